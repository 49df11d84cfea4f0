"""A Postgres saver that knows what has reached the database, so that a program dies right then."""

import os
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Condition
from typing import Any, NoReturn

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import ChannelVersions, Checkpoint, CheckpointMetadata
from langgraph.checkpoint.postgres import PostgresSaver
from psycopg import Connection
from psycopg.rows import DictRow, dict_row

KILLED = 9
"""Exit code of a program that died in a tool."""
GAVE_UP = 70
"""Exit code of a program whose siblings never finished, which would be a mistake of the program."""
PATIENCE = 30.0
"""Seconds to wait for the siblings: far more than a loaded machine needs."""
CALLER = "00000000-0000-0000-0000-000000000000"
"""The task id under which LangGraph stores the writes of a caller's `Command`."""


class WitnessSaver(PostgresSaver):
    """LangGraph's own saver, with an eye on it: rows are written by the parent class alone."""

    def __init__(self, connection: Connection[DictRow]) -> None:
        super().__init__(connection)
        self._changed = Condition()
        self._settled: dict[str, set[str]] = defaultdict(set)
        self._newest = ""
        self._answered = False
        self._last_tasks: int | None = None

    @classmethod
    @contextmanager
    def connect(cls, database_url: str) -> Iterator["WitnessSaver"]:
        """Open a saver on a database whose tables are there.

        Args:
            database_url: The database, as a URL or a libpq connection string.

        Yields:
            The saver; its connection is closed behind it.
        """
        with Connection.connect(
            database_url, autocommit=True, prepare_threshold=0, row_factory=dict_row
        ) as connection:
            yield cls(connection)

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        if self._last_tasks is not None:
            self.die_after(self._last_tasks)
        saved = super().put(config, checkpoint, metadata, new_versions)
        with self._changed:
            self._newest = checkpoint["id"]
            self._changed.notify_all()
        return saved

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        super().put_writes(config, writes, task_id, task_path)
        with self._changed:
            if task_id == CALLER:
                self._answered = True
            else:
                self._settled[config["configurable"]["checkpoint_id"]].add(task_id)
            self._changed.notify_all()

    def die_before_next(self, tasks: int) -> None:
        """End the process when the next checkpoint is to be written, and this one's tasks have.

        Args:
            tasks: How many tasks the newest checkpoint has.
        """
        self._last_tasks = tasks

    def wait_for(self, tasks: int, *, answer: bool = False) -> bool:
        """Wait until so many tasks have written.

        Args:
            tasks: How many tasks of the newest checkpoint must have their writes on disk.
            answer: Whether a caller's answer must be on disk too.

        Returns:
            Whether they have; False when patience ran out.
        """
        with self._changed:
            return self._changed.wait_for(
                lambda: (
                    len(self._settled[self._newest]) >= tasks and (self._answered or not answer)
                ),
                timeout=PATIENCE,
            )

    def die_after(self, tasks: int, *, answer: bool = False) -> NoReturn:
        """End the process, without any clean-up, once so many tasks have written.

        Args:
            tasks: How many tasks of the newest checkpoint must have their writes on disk.
            answer: Whether a caller's answer must be on disk too.
        """
        os._exit(KILLED if self.wait_for(tasks, answer=answer) else GAVE_UP)

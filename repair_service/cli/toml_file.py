"""Reading a file of settings, whatever the operator named by mistake."""

import os
import stat
import tomllib
from pathlib import Path
from typing import Any

from repair_service.errors import UsageError

LARGEST = 1_000_000
"""Bytes. Settings are a few lines; what is larger was named by mistake."""


def read_toml(path: Path) -> dict[str, Any]:
    """The values in a TOML file.

    Raises:
        UsageError: It cannot be read, is no file, is too large, or no TOML.
    """
    try:
        return tomllib.loads(_text_of(path))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(f"{path} is not valid TOML: {_first_line(error)}.") from None


def _text_of(path: Path) -> str:
    """A file's text; a pipe would make every verb wait, and a device may never end.

    Raises:
        OSError, UnicodeDecodeError: It cannot be read, or is no UTF-8 text.
        UsageError: It is no file, or too large for one of settings.
    """
    # Without O_NONBLOCK the opening of a pipe waits for whoever writes to it.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise UsageError(f"{path} is no regular file; name one in TOML.")
        data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise UsageError(
            f"{path} is larger than {LARGEST // 1_000_000} MB, so it is no file of settings."
        )
    return data.decode("utf-8")


def _first_line(error: Exception) -> str:
    # tomllib quotes at most one character of the file, so no secret can be in it.
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8 text"
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return str(error).splitlines()[0]

-- All pending writes of some threads, as COPY sends them.
COPY (
    SELECT w.thread_id, w.checkpoint_ns, w.checkpoint_id, w.task_id, w.idx, w.channel, w.type,
        w.blob, {task_path}
    FROM {schema}.checkpoint_writes AS w
    WHERE w.thread_id = ANY(%(threads)s::text[])
) TO STDOUT (FORMAT binary)

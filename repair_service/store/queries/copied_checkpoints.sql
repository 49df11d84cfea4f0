-- All checkpoints of some threads, as COPY sends them.
COPY (
    SELECT c.thread_id, c.checkpoint_ns, c.checkpoint_id, c.parent_checkpoint_id, c.type,
        c.checkpoint, c.metadata
    FROM {schema}.checkpoints AS c
    WHERE c.thread_id = ANY(%(threads)s::text[])
) TO STDOUT (FORMAT binary)

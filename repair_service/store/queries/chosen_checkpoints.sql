-- Some checkpoints, as COPY sends them.
COPY (
    SELECT c.thread_id, c.checkpoint_ns, c.checkpoint_id, c.parent_checkpoint_id, c.type,
        c.checkpoint, c.metadata
    FROM unnest(%(threads)s::text[], %(namespaces)s::text[], %(checkpoints)s::text[])
        AS wanted(thread_id, checkpoint_ns, checkpoint_id)
    JOIN {schema}.checkpoints AS c USING (thread_id, checkpoint_ns, checkpoint_id)
) TO STDOUT (FORMAT binary)

-- Some checkpoints by primary key. LATERAL with LIMIT keeps the planner from reading the table.
SELECT wanted.position, found.parent_checkpoint_id, found.checkpoint, found.metadata
FROM unnest(%(threads)s::text[], %(namespaces)s::text[], %(checkpoints)s::text[])
    WITH ORDINALITY AS wanted(thread_id, checkpoint_ns, checkpoint_id, position)
CROSS JOIN LATERAL (
    SELECT c.parent_checkpoint_id, c.checkpoint, c.metadata
    FROM {schema}.checkpoints AS c
    WHERE c.thread_id = wanted.thread_id
        AND c.checkpoint_ns = wanted.checkpoint_ns
        AND c.checkpoint_id = wanted.checkpoint_id
    LIMIT 1
) AS found

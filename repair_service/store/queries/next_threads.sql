-- The thread ids behind one, in the order of the primary key: each step is one descent into the
-- index and reads no history. Nothing outlives the statement, so a transaction pooler is no trouble.
-- Columns are compared with columns and bare parameters only, never under a collation of our own:
-- so every comparison uses the collation of the index, whatever that is.
WITH RECURSIVE walk AS (
    (
        SELECT c.thread_id
        FROM {schema}.checkpoints AS c
        WHERE %(after)s::text IS NULL OR c.thread_id > %(after)s::text
        ORDER BY c.thread_id, c.checkpoint_ns, c.checkpoint_id
        LIMIT 1
    )
    UNION ALL
    SELECT following.thread_id
    FROM walk
    CROSS JOIN LATERAL (
        SELECT c.thread_id
        FROM {schema}.checkpoints AS c
        WHERE c.thread_id > walk.thread_id
        ORDER BY c.thread_id, c.checkpoint_ns, c.checkpoint_id
        LIMIT 1
    ) AS following
)
SELECT walk.thread_id FROM walk LIMIT %(limit)s

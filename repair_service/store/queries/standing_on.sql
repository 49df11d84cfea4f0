-- What was built on one checkpoint since: later checkpoints of its namespace, its children, runs
-- that left pending writes on it, and sub-graphs that were called from it.
SELECT 'a newer checkpoint' AS what
FROM {schema}.checkpoints AS c
WHERE c.thread_id = %(thread_id)s AND c.checkpoint_ns = %(checkpoint_ns)s
    AND (c.checkpoint_id > %(checkpoint_id)s OR c.parent_checkpoint_id = %(checkpoint_id)s)
UNION
SELECT 'a run''s pending writes'
FROM {schema}.checkpoint_writes AS w
WHERE w.thread_id = %(thread_id)s AND w.checkpoint_ns = %(checkpoint_ns)s
    AND w.checkpoint_id = %(checkpoint_id)s
UNION
SELECT 'a sub-graph''s checkpoint'
FROM {schema}.checkpoints AS c
CROSS JOIN LATERAL jsonb_each_text(
    CASE WHEN jsonb_typeof(c.metadata -> 'parents') = 'object'
        THEN c.metadata -> 'parents' ELSE '{{}}'::jsonb END
) AS above(checkpoint_ns, checkpoint_id)
WHERE c.thread_id = %(thread_id)s
    AND above.checkpoint_ns = %(checkpoint_ns)s AND above.checkpoint_id = %(checkpoint_id)s
    AND c.checkpoint_ns <> %(checkpoint_ns)s

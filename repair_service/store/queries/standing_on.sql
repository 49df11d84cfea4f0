-- What was built on one checkpoint since: later checkpoints of its namespace, its children, runs
-- that left pending writes on it, and sub-graphs that were called from it. What the patch wrote
-- itself does not count: pending writes are compared by their digest, where it wrote some.
SELECT 'a newer checkpoint' AS what
FROM {schema}.checkpoints AS c
WHERE c.thread_id = %(thread_id)s AND c.checkpoint_ns = %(checkpoint_ns)s
    AND (c.checkpoint_id > %(checkpoint_id)s OR c.parent_checkpoint_id = %(checkpoint_id)s)
UNION
SELECT 'a run''s pending writes'
FROM {schema}.checkpoint_writes AS w
WHERE w.thread_id = %(thread_id)s AND w.checkpoint_ns = %(checkpoint_ns)s
    AND w.checkpoint_id = %(checkpoint_id)s AND NOT %(wrote)s::boolean
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
    AND NOT EXISTS (
        SELECT 1
        FROM unnest(%(own_namespaces)s::text[], %(own_checkpoints)s::text[])
            AS own(checkpoint_ns, checkpoint_id)
        WHERE own.checkpoint_ns = c.checkpoint_ns AND own.checkpoint_id = c.checkpoint_id
    )

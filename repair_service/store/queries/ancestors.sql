-- From some checkpoints back along their parents, as far as the rows and the depth go. Only ids are
-- carried along the walk; the documents are looked up behind it.
WITH RECURSIVE chain AS (
    SELECT wanted.position, 1 AS depth, c.thread_id, c.checkpoint_ns, c.checkpoint_id,
        c.parent_checkpoint_id
    FROM unnest(%(threads)s::text[], %(namespaces)s::text[], %(checkpoints)s::text[])
        WITH ORDINALITY AS wanted(thread_id, checkpoint_ns, checkpoint_id, position)
    CROSS JOIN LATERAL (
        SELECT c.thread_id, c.checkpoint_ns, c.checkpoint_id, c.parent_checkpoint_id
        FROM {schema}.checkpoints AS c
        WHERE c.thread_id = wanted.thread_id
            AND c.checkpoint_ns = wanted.checkpoint_ns
            AND c.checkpoint_id = wanted.checkpoint_id
        LIMIT 1
    ) AS c
    UNION ALL
    SELECT chain.position, chain.depth + 1, c.thread_id, c.checkpoint_ns, c.checkpoint_id,
        c.parent_checkpoint_id
    FROM chain
    CROSS JOIN LATERAL (
        SELECT c.thread_id, c.checkpoint_ns, c.checkpoint_id, c.parent_checkpoint_id
        FROM {schema}.checkpoints AS c
        WHERE c.thread_id = chain.thread_id
            AND c.checkpoint_ns = chain.checkpoint_ns
            AND c.checkpoint_id = chain.parent_checkpoint_id
        LIMIT 1
    ) AS c
    WHERE chain.depth < %(depth)s
)
SELECT chain.position, chain.checkpoint_id, chain.parent_checkpoint_id, found.checkpoint,
    found.metadata
FROM chain
CROSS JOIN LATERAL (
    SELECT c.checkpoint, c.metadata
    FROM {schema}.checkpoints AS c
    WHERE c.thread_id = chain.thread_id
        AND c.checkpoint_ns = chain.checkpoint_ns
        AND c.checkpoint_id = chain.checkpoint_id
    LIMIT 1
) AS found
ORDER BY chain.position, chain.depth

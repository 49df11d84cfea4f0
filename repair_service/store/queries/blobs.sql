-- The blobs of the versions that some checkpoints name. The bytes of an input may be large and are
-- never asked for: its type tells whether there is one.
SELECT wanted.position, found.channel, found.version, found.type, found.blob
FROM unnest(%(threads)s::text[], %(namespaces)s::text[], %(checkpoints)s::text[])
    WITH ORDINALITY AS wanted(thread_id, checkpoint_ns, checkpoint_id, position)
CROSS JOIN LATERAL (
    SELECT c.checkpoint -> 'channel_versions' AS versions
    FROM {schema}.checkpoints AS c
    WHERE c.thread_id = wanted.thread_id
        AND c.checkpoint_ns = wanted.checkpoint_ns
        AND c.checkpoint_id = wanted.checkpoint_id
    LIMIT 1
) AS head
CROSS JOIN LATERAL (
    -- In a select list the pairs are handed on one by one, in FROM they would be stored first.
    SELECT (each.pair).key AS channel, (each.pair).value AS version
    FROM (
        SELECT jsonb_each_text(
            CASE
                WHEN jsonb_typeof(head.versions) = 'object' THEN head.versions
                ELSE '{{}}'::jsonb
            END
        ) AS pair
        OFFSET 0
    ) AS each
) AS named
CROSS JOIN LATERAL (
    SELECT b.channel, b.version, b.type,
        CASE WHEN b.channel NOT IN ('__start__', '__input__') THEN b.blob END AS blob
    FROM {schema}.checkpoint_blobs AS b
    WHERE b.thread_id = wanted.thread_id
        AND b.checkpoint_ns = wanted.checkpoint_ns
        AND b.channel = named.channel
        AND b.version = named.version
    LIMIT 1
) AS found

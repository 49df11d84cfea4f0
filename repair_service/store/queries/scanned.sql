-- What a scan needs of some heads: for each a row of its own (no channel), and one for each blob of
-- the versions that it names. The bytes of an input may be large and are never asked for: its type
-- tells whether there is one. A large value that does not begin as a list of messages does
-- (transcript/read.py, `looks_like_transcript`) is left out too, and never leaves the server.
-- Channels that are known to hold lists are not looked at first.
SELECT wanted.position,
    CASE WHEN named.channel IS NULL THEN head.checkpoint::text END AS checkpoint,
    CASE WHEN named.channel IS NULL THEN head.metadata::text END AS metadata,
    head.parent_checkpoint_id, found.channel, found.version, found.type,
    CASE WHEN found.kept THEN found.blob END AS blob,
    NOT found.kept AND found.channel NOT IN ('__start__', '__input__') AS left_out
FROM unnest(%(threads)s::text[], %(namespaces)s::text[], %(checkpoints)s::text[])
    WITH ORDINALITY AS wanted(thread_id, checkpoint_ns, checkpoint_id, position)
CROSS JOIN LATERAL (
    SELECT c.parent_checkpoint_id, c.checkpoint, c.metadata,
        c.checkpoint -> 'channel_versions' AS versions
    FROM {schema}.checkpoints AS c
    WHERE c.thread_id = wanted.thread_id
        AND c.checkpoint_ns = wanted.checkpoint_ns
        AND c.checkpoint_id = wanted.checkpoint_id
    LIMIT 1
) AS head
CROSS JOIN LATERAL (
    SELECT NULL::text AS channel, NULL::text AS version
    UNION ALL
    -- In a select list the pairs are handed on one by one, in FROM they would be stored first.
    SELECT (each.pair).key, (each.pair).value
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
LEFT JOIN LATERAL (
    SELECT b.channel, b.version, b.type, b.blob,
        CASE
            WHEN b.channel IN ('__start__', '__input__') THEN false
            WHEN b.channel = ANY(%(lists)s::text[]) THEN true
            WHEN octet_length(b.blob) < 1024 THEN true
            WHEN b.channel LIKE '\_\_%%' OR b.channel LIKE '%%:%%' THEN true
            WHEN b.type = 'msgpack' THEN encode(substr(b.blob, 1, 12), 'hex') ~
                '^(c7..07|c8....07|c9........07|d[4-8]07)?(9.|dc....|dd........)(8.|c[789]|d[4-8ef])'
                OR (
                    encode(substr(b.blob, 1, 12), 'hex') ~
                    '^(c7..07|c8....07|c9........07|d[4-8]07)?(9.|dc....|dd........)(92|[ab].|d[9ab])'
                    AND (
                        position('tool_'::bytea IN b.blob) > 0
                        OR position('function_call'::bytea IN b.blob) > 0
                    )
                )
            WHEN b.type = 'json' AND substr(b.blob, 1, 31) = '{{"lc":2,"type":"delta_snapshot"'::bytea
                THEN true
            WHEN b.type = 'json' THEN encode(substr(b.blob, 1, 64), 'hex') ~
                '^(09|0a|0b|0c|0d|20)*5b(09|0a|0b|0c|0d|20)*(7b|$)'
                OR (
                    encode(substr(b.blob, 1, 64), 'hex') ~
                    '^(09|0a|0b|0c|0d|20)*5b(09|0a|0b|0c|0d|20)*(22|5b)'
                    AND (
                        position('tool_'::bytea IN b.blob) > 0
                        OR position('function_call'::bytea IN b.blob) > 0
                    )
                )
            ELSE b.type NOT IN ('bytes', 'bytearray')
        END AS kept
    FROM {schema}.checkpoint_blobs AS b
    WHERE b.thread_id = wanted.thread_id
        AND b.checkpoint_ns = wanted.checkpoint_ns
        AND b.channel = named.channel
        AND b.version = named.version
    LIMIT 1
) AS found ON true
WHERE named.channel IS NULL OR found.channel IS NOT NULL

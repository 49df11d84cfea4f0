-- Some blobs by primary key; their bytes only where they are asked for.
SELECT wanted.position, found.type, found.blob
FROM unnest(
    %(threads)s::text[], %(namespaces)s::text[], %(channels)s::text[], %(versions)s::text[]
) WITH ORDINALITY AS wanted(thread_id, checkpoint_ns, channel, version, position)
CROSS JOIN LATERAL (
    SELECT b.type, CASE WHEN %(bytes)s::boolean THEN b.blob END AS blob
    FROM {schema}.checkpoint_blobs AS b
    WHERE b.thread_id = wanted.thread_id
        AND b.checkpoint_ns = wanted.checkpoint_ns
        AND b.channel = wanted.channel
        AND b.version = wanted.version
    LIMIT 1
) AS found

-- The blobs that some checkpoints name, each once, as COPY sends them.
COPY (
    SELECT b.thread_id, b.checkpoint_ns, b.channel, b.version, b.type, b.blob
    FROM (
        SELECT DISTINCT c.thread_id, c.checkpoint_ns, named.key AS channel, named.value AS version
        FROM unnest(%(threads)s::text[], %(namespaces)s::text[], %(checkpoints)s::text[])
            AS wanted(thread_id, checkpoint_ns, checkpoint_id)
        JOIN {schema}.checkpoints AS c USING (thread_id, checkpoint_ns, checkpoint_id)
        CROSS JOIN LATERAL jsonb_each_text(
            CASE
                WHEN jsonb_typeof(c.checkpoint -> 'channel_versions') = 'object'
                THEN c.checkpoint -> 'channel_versions'
                ELSE '{{}}'::jsonb
            END
        ) AS named(key, value)
    ) AS named
    JOIN {schema}.checkpoint_blobs AS b USING (thread_id, checkpoint_ns, channel, version)
) TO STDOUT (FORMAT binary)

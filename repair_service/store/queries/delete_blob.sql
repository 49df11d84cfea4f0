-- A value that our checkpoint alone named: nobody else names a version that we made.
DELETE FROM {schema}.checkpoint_blobs AS b
WHERE b.thread_id = %(thread_id)s AND b.checkpoint_ns = %(checkpoint_ns)s
    AND b.channel = %(channel)s AND b.version = %(version)s
    AND NOT EXISTS (
        SELECT 1 FROM {schema}.checkpoints AS c
        WHERE c.thread_id = b.thread_id AND c.checkpoint_ns = b.checkpoint_ns
            AND c.checkpoint -> 'channel_versions' ->> b.channel = b.version
    )

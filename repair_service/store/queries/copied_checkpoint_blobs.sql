-- All blobs of some threads, as COPY sends them.
COPY (
    SELECT b.thread_id, b.checkpoint_ns, b.channel, b.version, b.type, b.blob
    FROM {schema}.checkpoint_blobs AS b
    WHERE b.thread_id = ANY(%(threads)s::text[])
) TO STDOUT (FORMAT binary)

COPY {schema}.checkpoint_blobs (
    thread_id, checkpoint_ns, channel, version, type, blob
) FROM STDIN (FORMAT binary)

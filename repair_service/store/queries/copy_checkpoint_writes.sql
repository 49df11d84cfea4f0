COPY {schema}.checkpoint_writes (
    thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, blob, task_path
) FROM STDIN (FORMAT binary)

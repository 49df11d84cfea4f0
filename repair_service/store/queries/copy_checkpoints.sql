COPY {schema}.checkpoints (
    thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata
) FROM STDIN (FORMAT binary)

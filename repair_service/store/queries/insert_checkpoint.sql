INSERT INTO {schema}.checkpoints
    (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, checkpoint, metadata)
VALUES (
    %(thread_id)s, %(checkpoint_ns)s, %(checkpoint_id)s, %(parent_checkpoint_id)s,
    %(checkpoint)s, %(metadata)s
)
ON CONFLICT DO NOTHING

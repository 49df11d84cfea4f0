SELECT EXISTS (
    SELECT 1 FROM {schema}.checkpoints AS c
    WHERE c.thread_id = %(thread_id)s AND c.checkpoint_ns = %(checkpoint_ns)s
        AND c.checkpoint_id = %(checkpoint_id)s
) AS found

-- The pending writes of a checkpoint that we wrote, all of which we wrote.
DELETE FROM {schema}.checkpoint_writes
WHERE thread_id = %(thread_id)s AND checkpoint_ns = %(checkpoint_ns)s
    AND checkpoint_id = %(checkpoint_id)s

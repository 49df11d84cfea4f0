-- Only a row that we wrote, behind the checkpoint that we wrote it behind.
DELETE FROM {schema}.checkpoints
WHERE thread_id = %(thread_id)s AND checkpoint_ns = %(checkpoint_ns)s
    AND checkpoint_id = %(checkpoint_id)s
    AND parent_checkpoint_id IS NOT DISTINCT FROM %(parent_checkpoint_id)s::text
    AND metadata ? 'repair_service'

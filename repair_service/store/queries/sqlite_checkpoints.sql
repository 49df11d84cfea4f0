-- Of a langgraph-checkpoint-sqlite file: the checkpoints of a thread.
SELECT checkpoint_ns, checkpoint_id, parent_checkpoint_id, type, checkpoint, metadata
FROM checkpoints WHERE thread_id = :thread
ORDER BY checkpoint_ns, checkpoint_id

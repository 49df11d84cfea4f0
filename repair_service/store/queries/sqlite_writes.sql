-- Of a langgraph-checkpoint-sqlite file: the pending writes of a thread. Files of older releases
-- have no task_path.
SELECT checkpoint_ns, checkpoint_id, task_id, idx, channel, type, value, {task_path}
FROM writes WHERE thread_id = :thread
ORDER BY checkpoint_ns, checkpoint_id, task_id, idx

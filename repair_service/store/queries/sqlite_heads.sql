-- Of a langgraph-checkpoint-sqlite file: the newest checkpoint of each namespace of some threads.
SELECT thread_id, max(checkpoint_id) FROM checkpoints
WHERE thread_id IN (SELECT value FROM json_each(:threads)) GROUP BY thread_id, checkpoint_ns

-- Of a langgraph-checkpoint-sqlite file: the thread ids behind one.
SELECT DISTINCT thread_id FROM checkpoints WHERE :after IS NULL OR thread_id > :after
ORDER BY thread_id LIMIT :limit

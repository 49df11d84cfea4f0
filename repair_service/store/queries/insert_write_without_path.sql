-- LangGraph.js has no column task_path.
INSERT INTO {schema}.checkpoint_writes
    (thread_id, checkpoint_ns, checkpoint_id, task_id, idx, channel, type, blob)
VALUES (
    %(thread_id)s, %(checkpoint_ns)s, %(checkpoint_id)s, %(task_id)s, %(idx)s, %(channel)s,
    %(type)s, %(blob)s
)
ON CONFLICT DO NOTHING

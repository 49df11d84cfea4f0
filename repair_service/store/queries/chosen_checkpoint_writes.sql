-- The pending writes of some checkpoints, and the Sends that layouts before version 4 keep in their
-- parents' writes, each once, as COPY sends them.
COPY (
    SELECT w.thread_id, w.checkpoint_ns, w.checkpoint_id, w.task_id, w.idx, w.channel, w.type,
        w.blob, {task_path}
    FROM (
        SELECT wanted.thread_id, wanted.checkpoint_ns, wanted.checkpoint_id,
            bool_or(wanted.whole) AS whole
        FROM (
            SELECT chosen.thread_id, chosen.checkpoint_ns, chosen.checkpoint_id, true AS whole
            FROM unnest(%(threads)s::text[], %(namespaces)s::text[], %(checkpoints)s::text[])
                AS chosen(thread_id, checkpoint_ns, checkpoint_id)
            UNION ALL
            SELECT c.thread_id, c.checkpoint_ns, c.parent_checkpoint_id, false
            FROM unnest(%(threads)s::text[], %(namespaces)s::text[], %(checkpoints)s::text[])
                AS chosen(thread_id, checkpoint_ns, checkpoint_id)
            JOIN {schema}.checkpoints AS c USING (thread_id, checkpoint_ns, checkpoint_id)
            WHERE c.parent_checkpoint_id IS NOT NULL
        ) AS wanted
        GROUP BY wanted.thread_id, wanted.checkpoint_ns, wanted.checkpoint_id
    ) AS wanted
    JOIN {schema}.checkpoint_writes AS w USING (thread_id, checkpoint_ns, checkpoint_id)
    WHERE wanted.whole OR w.channel = '__pregel_tasks'
) TO STDOUT (FORMAT binary)

-- The pending writes of some checkpoints; of one channel only, where one is named. OFFSET 0 keeps
-- the look-up by primary key, whatever the planner believes of the table.
SELECT wanted.position, found.task_id, found.idx, found.channel, found.type, found.blob,
    found.task_path
FROM unnest(%(threads)s::text[], %(namespaces)s::text[], %(checkpoints)s::text[])
    WITH ORDINALITY AS wanted(thread_id, checkpoint_ns, checkpoint_id, position)
CROSS JOIN LATERAL (
    SELECT w.task_id, w.idx, w.channel, w.type, w.blob, {task_path} AS task_path
    FROM {schema}.checkpoint_writes AS w
    WHERE w.thread_id = wanted.thread_id
        AND w.checkpoint_ns = wanted.checkpoint_ns
        AND w.checkpoint_id = wanted.checkpoint_id
        AND (%(channel)s::text IS NULL OR w.channel = %(channel)s::text)
    OFFSET 0
) AS found

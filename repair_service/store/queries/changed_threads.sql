-- Of the next threads behind one, those that have a head which may be newer than a time, by its id
-- alone: a UUIDv6 stands in the order of time (its text is the same under every collation, but is
-- compared by bytes), and an id that is none tells no time. Walks as next_threads and heads do.
WITH RECURSIVE walk AS (
    (
        SELECT c.thread_id
        FROM {schema}.checkpoints AS c
        WHERE %(after)s::text IS NULL OR c.thread_id > %(after)s::text
        ORDER BY c.thread_id, c.checkpoint_ns, c.checkpoint_id
        LIMIT 1
    )
    UNION ALL
    SELECT following.thread_id
    FROM walk
    CROSS JOIN LATERAL (
        SELECT c.thread_id
        FROM {schema}.checkpoints AS c
        WHERE c.thread_id > walk.thread_id
        ORDER BY c.thread_id, c.checkpoint_ns, c.checkpoint_id
        LIMIT 1
    ) AS following
),
page AS MATERIALIZED (
    SELECT walk.thread_id FROM walk LIMIT %(limit)s
),
head AS (
    SELECT newest.thread_id, newest.checkpoint_ns, newest.checkpoint_id
    FROM page
    CROSS JOIN LATERAL (
        SELECT c.thread_id, c.checkpoint_ns, c.checkpoint_id
        FROM {schema}.checkpoints AS c
        WHERE c.thread_id = page.thread_id
        ORDER BY c.thread_id DESC, c.checkpoint_ns DESC, c.checkpoint_id DESC
        LIMIT 1
    ) AS newest
    UNION ALL
    SELECT newest.thread_id, newest.checkpoint_ns, newest.checkpoint_id
    FROM head
    CROSS JOIN LATERAL (
        SELECT c.thread_id, c.checkpoint_ns, c.checkpoint_id
        FROM {schema}.checkpoints AS c
        WHERE c.thread_id = head.thread_id AND c.checkpoint_ns < head.checkpoint_ns
        ORDER BY c.thread_id DESC, c.checkpoint_ns DESC, c.checkpoint_id DESC
        LIMIT 1
    ) AS newest
    WHERE head.checkpoint_ns <> ''
)
SELECT (SELECT max(page.thread_id) FROM page) AS last,
    (SELECT count(*) FROM head) AS heads,
    ARRAY(
        SELECT DISTINCT head.thread_id
        FROM head
        WHERE head.checkpoint_id COLLATE "C" >= %(first_id)s::text
            OR head.checkpoint_id !~
                '^[0-9a-f]{{8}}-[0-9a-f]{{4}}-6[0-9a-f]{{3}}-[0-9a-f]{{4}}-[0-9a-f]{{12}}$'
        ORDER BY head.thread_id
    ) AS changed

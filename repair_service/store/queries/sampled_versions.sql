-- How channel versions are written: as text by Python, as numbers by LangGraph.js.
SELECT DISTINCT jsonb_typeof(named.version) AS kind
FROM {schema}.checkpoints AS c TABLESAMPLE SYSTEM (%(percent)s::real)
CROSS JOIN LATERAL jsonb_each(
    CASE
        WHEN jsonb_typeof(c.checkpoint -> 'channel_versions') = 'object'
        THEN c.checkpoint -> 'channel_versions'
        ELSE '{{}}'::jsonb
    END
) AS named(channel, version)

INSERT INTO {schema}.checkpoint_migrations (v) VALUES (%(v)s) ON CONFLICT DO NOTHING

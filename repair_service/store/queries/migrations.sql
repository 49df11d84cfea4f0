SELECT m.v FROM {schema}.checkpoint_migrations AS m ORDER BY m.v

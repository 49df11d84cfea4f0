-- Four roles for repair-service, each with the rights of what it does and no other.
--
--   psql -v ON_ERROR_STOP=1 -d DATABASE -f roles.sql
--   psql -v ON_ERROR_STOP=1 -v schema=langgraph -d DATABASE -f roles.sql
--   psql -v ON_ERROR_STOP=1 -v ledger_only=on -d LEDGER -f roles.sql    for a ledger elsewhere
--
-- Run it as the owner of the checkpoint tables (CREATEROLE, CREATE on the database), before
-- `repair-service db upgrade`. It may be run again at any time. With -v migrations=on the repairer
-- may also `migrate`, and the undoer take that back. Other names: -v auditor=NAME,
-- -v repairer=NAME, -v undoer=NAME, -v migrator=NAME. The roles have no password yet:
-- \password repair_repairer
--
--   repair_auditor    doctor, audit, show, plan
--   repair_repairer   the same, and sweep, repair, apply, runs, report
--   repair_undoer     the same, and undo: the only one that may delete
--   repair_migrator   db upgrade: owns the ledger, and sees nothing of the application's
--
-- An --active-query reads a table of the application's own: grant SELECT on that as well.
-- Before Postgres 15 every role may make tables in public: REVOKE CREATE ON SCHEMA public FROM
-- PUBLIC.

\if :{?schema} \else \set schema public \endif
\if :{?auditor} \else \set auditor repair_auditor \endif
\if :{?repairer} \else \set repairer repair_repairer \endif
\if :{?undoer} \else \set undoer repair_undoer \endif
\if :{?migrator} \else \set migrator repair_migrator \endif
\if :{?migrations} \else \set migrations off \endif

BEGIN;

SELECT format('CREATE ROLE %I LOGIN', name)
FROM unnest(ARRAY[:'auditor', :'repairer', :'undoer', :'migrator']) AS name
WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = name)
\gexec

SELECT format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), name)
FROM unnest(ARRAY[:'auditor', :'repairer', :'undoer', :'migrator']) AS name
\gexec

\if :{?ledger_only}
\else
-- The checkpoint tables: read all four, add rows to two. No role may update one.
GRANT USAGE ON SCHEMA :"schema" TO :"auditor", :"repairer", :"undoer";
GRANT SELECT ON
    :"schema".checkpoints,
    :"schema".checkpoint_blobs,
    :"schema".checkpoint_writes,
    :"schema".checkpoint_migrations
TO :"auditor", :"repairer", :"undoer";
GRANT INSERT ON :"schema".checkpoints, :"schema".checkpoint_blobs TO :"repairer", :"undoer";
GRANT DELETE ON :"schema".checkpoints, :"schema".checkpoint_blobs TO :"undoer";
\if :migrations
-- A migration takes pending writes with it.
GRANT INSERT ON :"schema".checkpoint_writes TO :"repairer", :"undoer";
GRANT DELETE ON :"schema".checkpoint_writes TO :"undoer";
\endif
\endif

-- The ledger. Making a schema for another role, and setting what that role's tables allow, takes
-- membership in it.
GRANT :"migrator" TO CURRENT_USER;
CREATE SCHEMA IF NOT EXISTS repair_service AUTHORIZATION :"migrator";
ALTER DEFAULT PRIVILEGES FOR ROLE :"migrator" IN SCHEMA repair_service
    GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO :"repairer", :"undoer";
GRANT USAGE ON SCHEMA repair_service TO :"repairer", :"undoer";
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA repair_service
TO :"repairer", :"undoer";

COMMIT;

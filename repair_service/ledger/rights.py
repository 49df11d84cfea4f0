"""What the role may do with the ledger, asked of the server before it refuses."""

from dataclasses import dataclass

from sqlalchemy import Connection, text

from repair_service.ledger.tables import SCHEMA, VERSION_TABLE, metadata

NEEDED = ("SELECT", "INSERT", "UPDATE", "DELETE")
"""On every table; DELETE because old findings are let go of."""


@dataclass(frozen=True, slots=True)
class Rights:
    """What the role may do.

    Attributes:
        role, database: Their names, quoted as a GRANT needs them.
        schema: Whether the ledger's schema is there.
        tables: Whether tables of the ledger are there, whatever the role may see of them.
        may_create_schema: Whether the role may make one in this database.
        may_use_schema: Whether it may name what is in the schema.
        may_create_tables: Whether it may make tables in the schema.
        missing: What it lacks on tables that are there, as `INSERT ON repair_service.runs`.
        read_only: Whether nothing can be written (a standby, or a role that is set to read only).
    """

    role: str
    database: str
    schema: bool
    tables: bool
    may_create_schema: bool
    may_use_schema: bool
    may_create_tables: bool
    missing: tuple[str, ...]
    read_only: bool

    @property
    def may_write(self) -> bool:
        """Whether runs, findings and repairs can be written, as far as rights go."""
        return self.may_use_schema and not self.missing and not self.read_only

    def remedy_to_make(self) -> str | None:
        """What to do where the role may not make the schema or its tables; None where it may."""
        if not self.schema and not self.may_create_schema:
            return (
                f"The role {self.role} may not make the schema {SCHEMA} in the database "
                f"{self.database}. As its owner, run GRANT CREATE ON DATABASE {self.database} TO "
                f"{self.role}; (or CREATE SCHEMA {SCHEMA} AUTHORIZATION {self.role};), then "
                "`repair-service db upgrade`."
            )
        if self.schema and not (self.may_use_schema and self.may_create_tables):
            return (
                f"The role {self.role} may not make tables in the schema {SCHEMA} of the database "
                f"{self.database}. Run `repair-service db upgrade` as the owner of the schema, or, "
                f"as the owner, GRANT USAGE, CREATE ON SCHEMA {SCHEMA} TO {self.role};"
            )
        return None

    def remedy_to_write(self) -> str | None:
        """What to do where the role may not use the tables; None where it may."""
        if self.read_only:
            return (
                f"The database {self.database} is read-only for the role {self.role} (a standby?). "
                "Give the address of the primary with --ledger-url."
            )
        if self.tables and not self.may_write:
            lacks = ", ".join(self.missing) or f"USAGE ON SCHEMA {SCHEMA}"
            return (
                f"The role {self.role} lacks rights on the ledger in the database {self.database} "
                f"({lacks}). As its owner, run GRANT USAGE ON SCHEMA {SCHEMA} TO {self.role}; "
                f"GRANT {', '.join(NEEDED)} ON ALL TABLES IN SCHEMA {SCHEMA} TO {self.role};"
            )
        return None


RIGHTS = text(
    """
    SELECT quote_ident(current_user) AS role,
           quote_ident(current_database()) AS database,
           spot IS NOT NULL AS schema,
           EXISTS (
               SELECT FROM pg_catalog.pg_class WHERE relnamespace = spot AND relname = :version
           ) AS tables,
           has_database_privilege(current_database(), 'CREATE') AS may_create_schema,
           coalesce(has_schema_privilege(spot, 'USAGE'), false) AS may_use_schema,
           coalesce(has_schema_privilege(spot, 'CREATE'), false) AS may_create_tables,
           current_setting('transaction_read_only') = 'on' AS read_only
    FROM to_regnamespace(:schema) AS spot
    """
)

MISSING = text(
    """
    SELECT needed || ' ON ' || :schema || '.' || relname
    FROM pg_catalog.pg_class CROSS JOIN unnest(CAST(:needed AS text[])) AS needed
    WHERE relnamespace = to_regnamespace(:schema)
      AND (relname = ANY(:tables) OR (relname = :version AND needed = 'SELECT'))
      AND NOT has_table_privilege(pg_class.oid, needed)
    ORDER BY 1
    """
)


def rights_of(connection: Connection) -> Rights:
    """Asks the server for the rights of the role that is connected."""
    row = connection.execute(RIGHTS, {"schema": SCHEMA, "version": VERSION_TABLE}).one()
    tables = [table.name for table in metadata.sorted_tables]
    missing = connection.scalars(
        MISSING,
        {"schema": SCHEMA, "version": VERSION_TABLE, "needed": [*NEEDED], "tables": tables},
    ).all()
    return Rights(**row._mapping, missing=tuple(missing))

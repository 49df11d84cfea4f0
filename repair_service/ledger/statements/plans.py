"""Statements about plans that are not used again."""

from typing import Any
from uuid import UUID

from sqlalchemy import Insert, Select, select
from sqlalchemy.dialects.postgresql import insert

from repair_service.ledger.tables import plans_used


def insert_plan_used(plan_id: str, run_id: UUID) -> Insert:
    """Claims a plan; writes no row where it was claimed before."""
    statement = insert(plans_used).values(plan_id=plan_id, run_id=run_id)
    return statement.on_conflict_do_nothing(constraint="plans_used_pkey")


def plan_used_at(plan_id: str) -> Select[Any]:
    """When a plan was applied."""
    return select(plans_used.c.applied_at, plans_used.c.run_id).where(
        plans_used.c.plan_id == plan_id
    )

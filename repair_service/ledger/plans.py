"""Saved plans that were applied: each is applied once."""

from uuid import UUID

from repair_service.ledger.database import Database
from repair_service.ledger.records.rails import PlanUse
from repair_service.ledger.statements import plans


class Plans:
    """The used plans in the ledger."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def use(self, plan_id: str, run_id: UUID) -> bool:
        """Claim a plan for a run; False where it was used before, by whomever."""
        return self._database.write(None, plans.insert_plan_used(plan_id, run_id)) > 0

    def used(self, plan_id: str) -> PlanUse | None:
        """When a plan was used; None while it was not."""
        for row in self._database.rows(plans.plan_used_at(plan_id)):
            return PlanUse(applied_at=row.applied_at, run_id=row.run_id)
        return None

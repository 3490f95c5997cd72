"""`manage.py verify`: recompute every derived figure independently; exit 1 on any difference."""

import sys
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol
from uuid import UUID

from audit.checks import verify_chain
from billing.checks import verify as verify_billing
from carbon.checks import verify as verify_carbon
from planning.checks import verify as verify_planning
from projects.chosen_organisation import chosen_organisation
from ui.console import JsonCommand


class Finding(Protocol):
    """What a check found to differ, in the words of any room."""

    @property
    def code(self) -> str: ...
    @property
    def where(self) -> str: ...
    @property
    def expected(self) -> object: ...
    @property
    def found(self) -> object: ...


CHECKS: Final[dict[str, Callable[[UUID], Sequence[Finding]]]] = {
    "audit": verify_chain,
    "billing": verify_billing,
    "carbon": verify_carbon,
    "planning": verify_planning,
}


class Command(JsonCommand):
    help = "Recompute every derived figure from its facts; exit 1 on any difference."

    def handle(self, *args: Any, **options: Any) -> None:
        organisation = chosen_organisation(options["organisation"])
        findings = {room: list(check(organisation.pk)) for room, check in CHECKS.items()}
        lines = [_line(room, found) for room, all_found in findings.items() for found in all_found]
        rows = [
            {
                "room": room,
                "code": one.code,
                "where": one.where,
                "expected": str(one.expected),
                "found": str(one.found),
            }
            for room, all_found in findings.items()
            for one in all_found
        ]
        verdict = f"{len(lines)} differences." if lines else "Every figure holds."
        self.emit(
            {"ok": not lines, "checks": list(CHECKS), "findings": rows},
            "\n".join([*lines, verdict]),
        )
        if lines:
            sys.exit(1)


def _line(room: str, finding: Finding) -> str:
    """One finding as one line."""
    return (
        f"{room}: {finding.code} at {finding.where}: "
        f"expected {finding.expected}, found {finding.found}"
    )

"""What other rooms may hold of the trail: findings of a check, entries to show. No Django."""

import json
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that a check found to differ: what kind, where, what should be there, what is."""

    code: str
    where: str
    expected: str
    found: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TrailEntry:
    """One line of the trail as pages and exports show it."""

    position: int
    at: datetime
    actor_label: str
    ip: str | None
    action: str
    object_type: str
    object_id: str
    before: object
    after: object
    reason: str
    entry_hash: str
    token_id: UUID | None

    @property
    def before_text(self) -> str:
        """What was, as one line of JSON; empty when there was nothing."""
        return _text(self.before)

    @property
    def after_text(self) -> str:
        """What is, as one line of JSON; empty when nothing is left."""
        return _text(self.after)


def _text(value: object) -> str:
    return "" if value is None else json.dumps(value, ensure_ascii=False)

"""What rules would do to the published charges, before anybody puts them in force; no writes."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final
from uuid import UUID

from billing.cost_questions import CostQuestion
from billing.cost_records import CostRow, CurrencyTotal, total_of
from billing.cost_selectors import cost_table, shelf_of
from billing.expressions import allocated, rule_holds
from billing.lake_costs import Pool, Shelf, costs_from_lake, pools
from billing.lake_tables import stored_charges
from billing.records import Basis, RuleRecord
from formulae.units import EXACT
from lake.engine import Engine, open_duckdb

BASIS: Final = Basis.EFFECTIVE
_BY_RULE: Final = CostQuestion(group_by=("rule_position", "project"), basis=BASIS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectChange:
    """What a project is charged with now and would be; None = nobody's."""

    project: str | None
    currency: str
    before: Decimal | None
    after: Decimal | None

    @property
    def difference(self) -> Decimal | None:
        """After less before; None where either is unknown."""
        if self.before is None or self.after is None:
            return None
        return EXACT.subtract(self.after, self.before)


@dataclass(frozen=True, slots=True, kw_only=True)
class Catch:
    """What a rule catches: charges, and their cost by currency."""

    rows: int = 0
    totals: tuple[CurrencyTotal, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    """A rule that catches nothing: no charge meets it, or earlier rules take all that do."""

    position: int
    taken_by: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What a whole rule set would do."""

    projects: tuple[ProjectChange, ...]
    catches: Mapping[int | None, Catch]  # by position; None = what no rule matches
    idle: tuple[Idle, ...]


def preview_rules(organisation_id: UUID, rules: Sequence[RuleRecord]) -> Preview:
    """The answer to: what if these rules were in force, for all that is published?"""
    before = cost_table(organisation_id, replace(_BY_RULE, group_by=("project",))).rows
    shelf = replace(shelf_of(organisation_id, _BY_RULE), rules=rules)
    after = costs_from_lake(shelf, _BY_RULE)
    catches = catches_of(after)
    unused = [rule for rule in rules if not _caught(catches, rule.position)]
    return Preview(
        projects=_changes(before, after),
        catches=catches,
        idle=_idle(shelf, unused) if unused else (),
    )


def catches_of(rows: Iterable[CostRow]) -> dict[int | None, Catch]:
    """What each rule caught, from rows grouped by the rule's position first."""
    found: dict[int | None, list[CostRow]] = {}
    for row in rows:
        position = None if row.group[0] is None else int(row.group[0])
        found.setdefault(position, []).append(row)
    return {
        position: Catch(rows=sum(row.rows for row in some), totals=total_of(some))
        for position, some in found.items()
    }


def _caught(catches: Mapping[int | None, Catch], position: int) -> bool:
    return position in catches and catches[position].rows > 0


def _changes(before: Sequence[CostRow], after: Sequence[CostRow]) -> tuple[ProjectChange, ...]:
    """One line a project and currency, those that change first, then by name, nobody's last."""
    old = {(row.group[0], row.currency): row.cost for row in before}
    new: dict[tuple[str | None, str], Decimal | None] = {}
    for slug in {row.group[1] for row in after}:
        for entry in total_of([row for row in after if row.group[1] == slug]):
            new[slug, entry.currency] = entry.cost
    changes = [
        ProjectChange(
            project=key[0],
            currency=key[1],
            before=old.get(key, Decimal(0)),
            after=new.get(key, Decimal(0)),
        )
        for key in {*old, *new}
    ]
    return tuple(
        sorted(changes, key=lambda one: (one.project is None, one.project or "", one.currency))
    )


def _idle(shelf: Shelf, unused: Sequence[RuleRecord]) -> tuple[Idle, ...]:
    """Why these rules catch nothing: who takes the charges that meet them."""
    takers: dict[int, set[int]] = {rule.position: set() for rule in unused}
    with open_duckdb() as engine:
        for pool in pools(shelf, allocating=True):
            if pool.book.for_cost:
                _note_takers(engine, pool, takers)
    return tuple(
        Idle(position=position, taken_by=tuple(sorted(found))) for position, found in takers.items()
    )


def _note_takers(engine: Engine, pool: Pool, takers: dict[int, set[int]]) -> None:
    charges = allocated(stored_charges(engine, pool.paths), pool.rules)
    wanted = [rule for rule in pool.rules if rule.position in takers]
    if not wanted:
        return
    names = {f"rule_{rule.position}": rule for rule in wanted}
    found = charges.group_by("rule_position").agg(
        **{name: rule_holds(charges, rule).sum() for name, rule in names.items()}
    )
    for row in engine.rows(found):
        for name, rule in names.items():
            if row[name] and row["rule_position"] is not None:
                takers[rule.position].add(row["rule_position"])

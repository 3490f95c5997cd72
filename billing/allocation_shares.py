"""Splits what a rule matched into the shares of its targets, exactly; after the engine's sums.

A sum's shares depend on what was summed. So that every question agrees with the roll-up, sums are
shared by the roll-up's own groups: where a question cuts such a group into parts, each part gets
the difference of the shares of the running sums, which add up to the group's shares to the last
digit.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from math import lcm
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from billing.records import RuleRecord
from formulae.allocation import split_integer
from formulae.units import EXACT, MONEY_QUANTUM

TARGET_KEYS: Final = ("project_id", "run_key", "team", "plan_line_key")
_DIGITS: Final = -int(MONEY_QUANTUM.as_tuple().exponent)
NOBODYS: Final[Mapping[str, Any]] = dict.fromkeys(TARGET_KEYS)


class Shares:
    """The shares of a rule set: what becomes of a sum that the rule at a position matched."""

    def __init__(self, rules: Sequence[RuleRecord]) -> None:
        self._targets = {rule.position: _keys(rule) for rule in rules}
        self._weights = {rule.position: _whole_weights(rule) for rule in rules}
        self.split_positions = tuple(
            sorted(position for position, targets in self._targets.items() if len(targets) > 1)
        )

    def targets(self, position: int | None) -> Sequence[Mapping[str, Any]]:
        """Whose the charges of a position are; nobody's where no rule matched."""
        return (NOBODYS,) if position is None else self._targets[position]

    def split(self, position: int | None, amount: Decimal | None) -> list[Decimal | None]:
        """The parts of an amount, one a target; they sum to it exactly. None stays None."""
        if position is None or len(self._weights[position]) == 1:
            return [amount]
        weights = self._weights[position]
        if amount is None:
            return [None] * len(weights)
        quanta = int(amount.scaleb(_DIGITS, context=EXACT))
        return [
            Decimal(part).scaleb(-_DIGITS, context=EXACT) for part in split_integer(quanta, weights)
        ]

    def shared(
        self, row: Mapping[str, Any], measures: Sequence[str], *, position: int | None
    ) -> Iterator[dict[str, Any]]:
        """A summed row once for each target: its measures split, its `rows` with the first.

        So many rows stand behind the sum; counted once, they add up whoever gets the sum.
        """
        targets = self.targets(position)
        if len(targets) == 1:
            yield {**row, **targets[0]}
            return
        parts = {name: self.split(position, row[name]) for name in measures}
        for index, target in enumerate(targets):
            own = {name: amounts[index] for name, amounts in parts.items()}
            yield {**row, **own, **target, "rows": 0 if index else row["rows"]}

    def shared_tables(self, table: pa.Table, measures: Sequence[str]) -> Iterator[pa.Table]:
        """Summed rows once for each target of their `rule_position`, as `shared` gives them."""
        positions = table["rule_position"]
        is_split = pc.fill_null(
            pc.is_in(positions, pa.array(self.split_positions, pa.int64())), False
        )
        whole = table.filter(pc.invert(is_split))
        keys = [position for position in self._targets if position not in self.split_positions]
        place = pc.index_in(whole["rule_position"], pa.array(keys, pa.int64()))
        for name in TARGET_KEYS:
            values = (self._targets[position][0][name] for position in keys)
            texts = [None if value is None else str(value) for value in values]
            whole = whole.append_column(name, pa.array(texts, pa.string()).take(place))
        yield whole
        rows = table.filter(is_split).to_pylist()
        shared = [
            one for row in rows for one in self.shared(row, measures, position=row["rule_position"])
        ]
        if shared:
            yield _text_keys(shared, whole.schema)


class RunningShares:
    """Shares of the parts of one group of the roll-up, in a fixed order of the parts."""

    def __init__(self, shares: Shares, position: int) -> None:
        self._shares, self._position = shares, position
        self._sums: dict[str, Decimal] = {}
        self._given: dict[str, list[Decimal]] = {}

    def part(self, name: str, amount: Decimal | None) -> list[Decimal | None]:
        """The shares of the next part of a measure."""
        if amount is None:
            return self._shares.split(self._position, None)
        self._sums[name] = EXACT.add(self._sums.get(name, Decimal(0)), amount)
        so_far = [
            part or Decimal(0) for part in self._shares.split(self._position, self._sums[name])
        ]
        before = self._given.get(name, [Decimal(0)] * len(so_far))
        self._given[name] = so_far
        return [EXACT.subtract(new, old) for new, old in zip(so_far, before, strict=True)]


def shared_parts(
    rows: Iterable[Mapping[str, Any]],
    shares: Shares,
    *,
    groups: Sequence[str],
    measures: Sequence[str],
) -> Iterator[dict[str, Any]]:
    """Rows, parts of the roll-up's groups, once for each target.

    Args:
        rows: sums with `rule_position` and `rows`, the parts of a group in their fixed order.
        shares: of the rules that matched them.
        groups: the columns that tell one group of the roll-up from the others.
        measures: what is split.
    """
    running: dict[tuple[Any, ...], RunningShares] = {}
    for row in rows:
        position = row["rule_position"]
        targets = shares.targets(position)
        if len(targets) == 1:
            yield {**row, **targets[0]}
            continue
        key = tuple(row[name] for name in groups)
        if key not in running:
            running[key] = RunningShares(shares, position)
        parts = {name: running[key].part(name, row[name]) for name in measures}
        for index, target in enumerate(targets):
            own = {name: amounts[index] for name, amounts in parts.items()}
            yield {**row, **own, **target, "rows": 0 if index else row["rows"]}


def _text_keys(rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    """The rows as a table, with their project's id as text."""
    texts = ({**row, "project_id": row["project_id"] and str(row["project_id"])} for row in rows)
    return pa.Table.from_pylist(list(texts), schema=schema)


def _keys(rule: RuleRecord) -> tuple[dict[str, Any], ...]:
    return tuple(
        {
            "project_id": target.project_id,
            "run_key": target.run_key or None,
            "team": target.team or None,
            "plan_line_key": target.plan_line_key or None,
        }
        for target in rule.targets
    )


def _whole_weights(rule: RuleRecord) -> tuple[int, ...]:
    """The weights over their common denominator."""
    fractions = [Fraction(target.weight) for target in rule.targets]
    common = lcm(*(one.denominator for one in fractions))
    return tuple(one.numerator * (common // one.denominator) for one in fractions)

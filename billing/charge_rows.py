"""Single charges from the lake: pages of them, and one with all that is stored; no cost is summed.

A charge is known by its slice, one immutable file, and its row there, from 0.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache, reduce
from typing import Any, Final
from uuid import UUID

import ibis

from billing.allocation_matching import columns_of, name_sources, position_of, rules_for_source
from billing.allocation_shares import Shares
from billing.class_reasons import deciding_rule
from billing.cost_classes import ClassRule
from billing.cost_questions import CostQuestion
from billing.expressions import allocated
from billing.lake_costs import given_to, is_wanted, kept
from billing.lake_tables import stored_charges, with_every_column
from billing.records import RuleRecord
from lake.engine import Engine, open_duckdb

MAX_TAG_KEYS: Final = 50
MAX_TAGGED_ROWS: Final = 200_000
_LISTED: Final = (
    "charge_period_start",
    "charge_period_end",
    "service_name",
    "charge_description",
    "resource_id",
    "region_id",
    "sub_account_id",
    "charge_category",
    "x_cost_class",
    "x_estimated",
    "billing_currency",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceFile:
    """One slice of a published month: where it lies, and whose rules hold for it."""

    slice_id: UUID
    path: str
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """A page of charges and how many there are in all."""

    rows: list[dict[str, Any]]
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """The slices to look through, the rules that give charges away, the projects' names."""

    slices: Sequence[SliceFile]
    rules: Sequence[RuleRecord]
    slugs: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundCharge:
    """One stored charge, the rule of classes that decided, and the rule that gave it away."""

    values: dict[str, Any]
    class_rule: ClassRule | None
    rule: RuleRecord | None
    given: tuple[dict[str, str | None], ...]


def charge_rows(stack: Stack, question: CostQuestion, *, limit: int, offset: int) -> Rows:
    """The dearest charges of a question first, `limit` of them from `offset` on."""
    if not stack.slices:
        return Rows(rows=[], count=0)
    with open_duckdb() as engine:
        parts = [_listed(engine, pile, stack, question) for pile in _piles(stack)]
        found = reduce(lambda left, right: left.union(right), parts)
        count = engine.rows(found.aggregate(count=found.count()))[0]["count"]
        order = [found.cost.desc(nulls_first=False), found.place, found.number]
        rows = engine.rows(found.order_by(order).limit(limit, offset=offset))
    weights = {
        source: _wanted_shares(stack, source, question)
        for source in {one.source for one in stack.slices}
    }
    for row in rows:
        one = stack.slices[row.pop("place")]
        row["slice_id"] = str(one.slice_id)
        row["share"] = weights[one.source].get(row["rule_position"])
    return Rows(rows=rows, count=count)


def tag_keys(stack: Stack, question: CostQuestion) -> list[str]:
    """Keys of tags on the question's days that the scope may see, whatever its filters.

    They are proposals: a few, and of the first charges that have tags.
    """
    days = replace(question, filters=())
    found = {
        key
        for pile in _piles(stack)
        for key in _keys_in(
            tuple(one.path for _place, one in pile),
            rules_for_source(stack.rules, pile[0][1].source) if days.needs_allocation else (),
            frozenset(_wanted_shares(stack, pile[0][1].source, days)),
            (question.start_on, question.end_on),
        )
    }
    return sorted(found)[:MAX_TAG_KEYS]


@lru_cache(maxsize=256)
def _keys_in(
    paths: tuple[str, ...],
    rules: tuple[RuleRecord, ...],
    wanted: frozenset[int | None],
    days: tuple[date | None, date | None],
) -> tuple[str, ...]:
    """Keys of tags in slices, which never change: what was found once stays so."""
    question = CostQuestion(start_on=days[0], end_on=days[1])
    with open_duckdb() as engine:
        charges = kept(stored_charges(engine, paths), question)
        charges = charges.filter(charges.has_tags).select(*{"tags", *columns_of(rules)})
        charges = allocated(charges.limit(MAX_TAGGED_ROWS), rules)
        charges = charges.filter(_is_one_of(charges.rule_position, wanted))
        keys = charges.select(key=charges.tags.keys().unnest()).distinct()
        rows = engine.rows(keys.order_by("key").limit(MAX_TAG_KEYS))
    return tuple(row["key"] for row in rows if row["key"])


def _is_one_of(position: Any, wanted: Collection[int | None]) -> Any:
    """Whether the rule that gave a charge away, or that none did, is among these."""
    found = position.isin([one for one in wanted if one is not None]).fill_null(False)
    return found | position.isnull() if None in wanted else found


def count_and_page(count: int, page_rows: int, asked: str) -> tuple[int, int]:
    """The number of the last page, and the page that is asked for as far as there is one."""
    last = max(1, -(-count // page_rows))
    number = int(asked) if asked.isascii() and asked.isdecimal() and len(asked) < 10 else 1
    return last, min(max(number, 1), last)


def find_charge(stack: Stack, number: int) -> FoundCharge | None:
    """The charge at a row of the only slice of the stack; None where there is no such row."""
    (one,) = stack.slices
    rules = rules_for_source(stack.rules, one.source)
    with open_duckdb() as engine:
        charges = _numbered(engine, [one])
        charge = engine.arrow(charges.filter(charges.number == number).drop("file_number"))
        if not charge.num_rows:
            return None
        class_rule = deciding_rule(engine, ibis.memtable(charge))
    (values,) = charge.to_pylist()
    position = position_of(values, rules)
    targets = Shares(rules).targets(position)
    return FoundCharge(
        values=values,
        class_rule=class_rule,
        rule=next((rule for rule in stack.rules if rule.position == position), None),
        given=tuple(given_to(target, stack.slugs) for target in targets),
    )


def _piles(stack: Stack) -> list[list[tuple[int, SliceFile]]]:
    """The slices, with their places on the stack, that are read in one go: the same rules hold."""
    apart = name_sources(stack.rules)
    found: dict[str, list[tuple[int, SliceFile]]] = {}
    for place, one in enumerate(stack.slices):
        found.setdefault(one.source if apart else "", []).append((place, one))
    return list(found.values())


def _numbered(engine: Engine, slices: Sequence[SliceFile]) -> ibis.Table:
    """The charges of slices with their rows; a column that a slice lacks is null."""
    table = engine.numbered_table([one.path for one in slices])
    return with_every_column(table.rename(number="file_row_number"))


def _listed(
    engine: Engine, pile: Sequence[tuple[int, SliceFile]], stack: Stack, question: CostQuestion
) -> ibis.Table:
    """The pile's charges that the question is about."""
    source = pile[0][1].source
    charges = kept(_numbered(engine, [one for _place, one in pile]), question)
    charges = allocated(charges, rules_for_source(stack.rules, source))
    shares = _wanted_shares(stack, source, question)
    charges = charges.filter(_is_one_of(charges.rule_position, shares))
    places = ibis.literal([place for place, _one in pile], "array<int64>")
    return charges.select(
        *_LISTED,
        "number",
        "rule_position",
        cost=charges[question.basis.column],
        place=places[charges.file_number],
    )


def _wanted_shares(
    stack: Stack, source: str, question: CostQuestion
) -> dict[int | None, Decimal | None]:
    """The rules whose charges are asked about -> their share of 0..1, None = the whole."""
    rules = rules_for_source(stack.rules, source)
    shares = Shares(rules)
    found: dict[int | None, Decimal | None] = {}
    weights: dict[int | None, list[Fraction]] = {None: [Fraction(1)]}
    weights |= {rule.position: [Fraction(one.weight) for one in rule.targets] for rule in rules}
    for position, parts in weights.items():
        given = [
            given_to({**target, "rule_position": position}, stack.slugs)
            for target in shares.targets(position)
        ]
        own = [part for part, one in zip(parts, given, strict=True) if is_wanted(one, question)]
        if not own:
            continue
        share = sum(own, Fraction(0)) / sum(parts, Fraction(0))
        found[position] = None if share == 1 else Decimal(share.numerator) / share.denominator
    return found

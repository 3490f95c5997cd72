"""Costs straight from the lake: what the roll-up does not hold, and what was known earlier."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import ibis

from billing.allocation_matching import name_sources, rules_for_source
from billing.allocation_shares import Shares, shared_parts
from billing.cost_questions import ALLOCATED_COLUMNS, TAG_PREFIX, CostQuestion, Filter, Scope
from billing.cost_records import MEASURES, CostRow, merged
from billing.expressions import DAILY_KEYS, allocated, whole_sum, with_daily_keys
from billing.lake_tables import stored_charges
from billing.records import MONEY_TYPE, RuleRecord
from lake.engine import Engine, open_duckdb


@dataclass(frozen=True, slots=True, kw_only=True)
class Book:
    """The files of one month of one source, and what is read from them."""

    source: str
    paths: tuple[str, ...]
    for_cost: bool = True
    measures: frozenset[str] = frozenset(MEASURES)
    knows_cost: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """The books that answer, the rules that give their charges away, the projects' names."""

    books: Sequence[Book]
    rules: Sequence[RuleRecord]
    slugs: Mapping[str, str]  # project id -> slug


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Files that are read in one go: the same rules hold for them, and the same is read."""

    book: Book
    paths: tuple[str, ...]
    rules: tuple[RuleRecord, ...]


def costs_from_lake(shelf: Shelf, question: CostQuestion) -> list[CostRow]:
    """Costs and measures of the charges on the shelf that the question is about."""
    if not shelf.books:
        return []
    with open_duckdb() as engine:
        rows = [
            row
            for pool in pools(shelf, allocating=question.needs_allocation)
            for row in _rows(_sums(engine, pool, question), shelf, question)
        ]
    return merged(rows)


def pools(shelf: Shelf, *, allocating: bool) -> list[Pool]:
    """The books in as few readings as their rules allow.

    Shares of a sum depend on what was summed: where a rule has several targets, every month of
    every source is read by itself, as the roll-up did.
    """
    by_source = allocating and name_sources(shelf.rules)
    by_month = allocating and bool(Shares(shelf.rules).split_positions)
    found: dict[tuple[Any, ...], list[Book]] = {}
    for index, book in enumerate(shelf.books):
        treatment = (book.for_cost, book.measures, book.knows_cost)
        apart = index if by_month else (book.source if by_source else None)
        found.setdefault((treatment, apart), []).append(book)
    return [
        Pool(
            book=books[0],
            paths=tuple(path for book in books for path in book.paths),
            rules=rules_for_source(shelf.rules, books[0].source),
        )
        for books in found.values()
    ]


def asked_charges(engine: Engine, pool: Pool, question: CostQuestion) -> ibis.Table:
    """The charges of the question's days and filters, but for what allocation says of them."""
    return kept(stored_charges(engine, pool.paths), question)


def kept(charges: ibis.Table, question: CostQuestion) -> ibis.Table:
    """Of stored charges, those of the question's days and filters of the bill's own columns."""
    keyed = with_daily_keys(charges)
    return keyed.filter(*_conditions(keyed, question))


def _sums(engine: Engine, pool: Pool, question: CostQuestion) -> Iterator[Mapping[str, Any]]:
    """Sums by the question's columns of the bill, each once for everybody who has a share."""
    charges = asked_charges(engine, pool, question)
    if question.needs_allocation:
        charges = allocated(charges, pool.rules)
    wanted = [name for name in question.group_by if name not in ALLOCATED_COLUMNS]
    names = {f"group_{index}": name for index, name in enumerate(wanted)}
    charges = charges.mutate(**{ours: charge_column(charges, name) for ours, name in names.items()})
    shares = Shares(pool.rules)
    keys = ["billing_currency"]
    if question.needs_allocation:
        keys = list(DAILY_KEYS) if shares.split_positions else [*keys, "rule_position"]
    grouped = charges.group_by([*names, *keys]).agg(
        cost=_cost(charges, pool.book, question),
        rows=charges.count() if pool.book.for_cost else ibis.literal(0),
        **{
            name: charges[column].sum() if name in pool.book.measures else ibis.null(MONEY_TYPE)
            for name, column in MEASURES.items()
        },
    )
    if question.needs_allocation and shares.split_positions:
        grouped = grouped.order_by([*keys, *names])
    rows = engine.rows(grouped)
    if question.needs_allocation:
        rows = list(shared_parts(rows, shares, groups=keys, measures=("cost", *MEASURES)))
    for row in rows:
        if not pool.book.for_cost and not _has_measures(row):
            continue  # a book that is read for measures only, and here has none
        yield {**{name: row[ours] for ours, name in names.items()}, "sums": row}


def _has_measures(row: Mapping[str, Any]) -> bool:
    return any(row[name] is not None for name in MEASURES)


def _cost(charges: ibis.Table, book: Book, question: CostQuestion) -> Any:
    """The cost of the question's basis: none of its own in a book that is read for measures."""
    if not book.for_cost:
        return ibis.literal(0).cast(MONEY_TYPE)
    if not book.knows_cost:
        return ibis.null(MONEY_TYPE)
    return whole_sum(charges, question.basis.column)


def _rows(
    found: Iterable[Mapping[str, Any]], shelf: Shelf, question: CostQuestion
) -> Iterator[CostRow]:
    """The groups that the question's scope and allocation filters let through."""
    for row in found:
        sums = row["sums"]
        given = given_to(sums, shelf.slugs) if question.needs_allocation else {}
        if question.needs_allocation and not is_wanted(given, question):
            continue
        yield CostRow(
            group=tuple(
                given[name] if name in ALLOCATED_COLUMNS else row[name]
                for name in question.group_by
            ),
            currency=sums["billing_currency"],
            cost=sums["cost"],
            rows=sums["rows"],
            **{name: sums[name] for name in MEASURES},
        )


def given_to(target: Mapping[str, Any], slugs: Mapping[str, str]) -> dict[str, str | None]:
    """To whom charges were given, and by which rule, under the names that questions use."""
    project_id = str(target["project_id"]) if target["project_id"] else None
    position = target.get("rule_position")
    return {
        "project_id": project_id,
        "project": slugs.get(project_id or ""),
        "run_key": target["run_key"],
        "team": target["team"],
        "plan_line_key": target["plan_line_key"],
        "rule_position": None if position is None else str(position),
    }


def is_wanted(given: Mapping[str, str | None], question: CostQuestion) -> bool:
    """Whether what was given away so is in the question's scope and passes its filters."""
    return _in_scope(given["project_id"], question.scope) and all(
        ((given[one.column] or None) in one.values) is not one.is_not
        for one in question.filters
        if one.column in ALLOCATED_COLUMNS
    )


def _in_scope(project_id: str | None, scope: Scope) -> bool:
    if scope.project_id is not None:
        return project_id == str(scope.project_id)
    if project_id is None:
        return scope.include_unallocated
    return scope.allowed is None or project_id in map(str, scope.allowed)


def _conditions(charges: ibis.Table, question: CostQuestion) -> list[Any]:
    conditions: list[Any] = [ibis.literal(True)]
    if question.start_on is not None:
        conditions.append(charges.day >= ibis.literal(question.start_on))
    if question.end_on is not None:
        conditions.append(charges.day < ibis.literal(question.end_on))
    conditions += [
        _passes(charges, one) for one in question.filters if one.column not in ALLOCATED_COLUMNS
    ]
    return conditions


def _passes(charges: ibis.Table, wanted: Filter) -> Any:
    column = charge_column(charges, wanted.column)
    known = [value for value in wanted.values if value is not None]
    passes = column.isin(known).fill_null(False) if known else ibis.literal(False)
    if None in wanted.values:
        passes = passes | column.isnull()
    return ~passes if wanted.is_not else passes


def charge_column(charges: ibis.Table, name: str) -> Any:
    """A column as text, null where nothing is written."""
    if name.startswith(TAG_PREFIX):
        return charges.tags[name.removeprefix(TAG_PREFIX)].nullif("")
    if name == "month":
        return charges.day.strftime("%Y-%m")
    if name == "day":
        return charges.day.cast("string")
    if name == "x_estimated":
        return ibis.ifelse(charges.is_estimated, ibis.literal("true"), ibis.literal("false"))
    return charges[name].nullif("")

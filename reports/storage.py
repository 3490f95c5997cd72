"""What a project stores, asks for and moves, by its bills; what larger objects would save."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Final

from billing.cost_records import CostRow, known_sum, merged, whole_sum
from billing.finding_records import SpendFinding
from billing.finding_selectors import spend_findings
from billing.findings import READ_BY_GET
from billing.selectors import billed_through, costs_grouped
from formulae.money import Money, divide
from formulae.storage import BYTES_PER_MEGABYTE, request_cost, requests_for
from formulae.units import BYTES_PER_TB, EXACT
from planning.classes import GROUP_OF_CLASS
from planning.phasing import planned_cost_by_day
from planning.records import CostGroup, PlanRecord
from planning.selectors import baseline_of
from projects.models import Project

TIERS: Final = (CostGroup.STORAGE_HOT, CostGroup.STORAGE_WARM, CostGroup.STORAGE_COLD)
REQUESTS: Final = ("request_get", "request_put", "request_other")
TRANSFERS: Final = ("egress", "transfer_inter_region", "transfer_intra_region", "retrieval")
# What the page prices of all that the bills show.
FINDINGS: Final = ("nat_bytes", "transfer_inter_region", "hot_storage_unread")
_PLAN_LINE: Final = re.compile(r"storage_(hot|warm|cold)(?:_\d+)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageQuestion:
    """Which days, at which cost; how large a shard would be, how often the store is read."""

    basis: str = "effective"
    start_on: date | None = None
    end_on: date | None = None
    shard_megabytes: int = 250
    reads_per_month: int = 31


@dataclass(frozen=True, slots=True, kw_only=True)
class TierMonth:
    """A tier in a month: the bill's TB-months and money, the plan's money for the same days.

    `stored_cost` is of keeping alone: retrieval is in `cost`, and has no TB-months.
    """

    month_on: date
    tier: CostGroup
    currency: str
    storage_tb_month: Decimal | None
    cost: Decimal | None
    stored_cost: Decimal | None
    planned: Decimal | None

    @property
    def difference(self) -> Decimal | None:
        """What it costs more than planned."""
        if self.cost is None or self.planned is None:
            return None
        return EXACT.subtract(self.cost, self.planned)

    @property
    def price_per_tb_month(self) -> Decimal | None:
        """What a TB-month came to."""
        return _price(self.stored_cost, self.storage_tb_month, per=Decimal(1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """Requests of a verb or bytes of a kind, what they cost and what one unit came to."""

    x_cost_class: str
    currency: str
    quantity: Decimal | None
    cost: Decimal | None
    unit_price: Decimal | None  # per 1,000 requests, per TB


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharding:
    """GET requests as they are and of a store of shards; None where a measure is missing."""

    currency: str
    requests: Decimal | None
    needed: int | None
    cost: Decimal | None
    would_cost: Decimal | None

    @property
    def saving(self) -> Decimal | None:
        """What shards would save; nothing where they ask for no less."""
        if self.cost is None or self.would_cost is None:
            return None
        return max(EXACT.subtract(self.cost, self.would_cost), Decimal(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class StoragePage:
    """What the page shows."""

    question: StorageQuestion
    tiers: tuple[TierMonth, ...]
    requests: tuple[Priced, ...]
    transfers: tuple[Priced, ...]
    shardings: tuple[Sharding, ...]
    findings: tuple[SpendFinding, ...]
    findings_on: date | None
    billed_through: date | None
    plan: PlanRecord | None

    @property
    def is_empty(self) -> bool:
        """Whether the bills show nothing of all this."""
        return not (self.tiers or self.requests or self.transfers)

    @property
    def currencies(self) -> list[str]:
        """Every currency of the page, in order."""
        rows: list[TierMonth | Priced] = [*self.tiers, *self.requests, *self.transfers]
        return sorted({row.currency for row in rows})


def storage_page(project: Project, question: StorageQuestion, *, as_of: datetime) -> StoragePage:
    """The storage, requests and transfer of a project."""
    rows = _rows(project, question)
    through = billed_through(project.organisation_id, project.pk)
    plan = baseline_of(project, as_of=as_of)
    whole = _by_class(rows)
    months = sorted({_month(row) for row in rows})
    last = months[-1] if months else None
    found = (
        spend_findings(project.organisation_id, month_on=last, project_id=project.pk)
        if last
        else []
    )
    return StoragePage(
        question=question,
        tiers=tuple(_tiers(rows, _planned(plan, question, through), plan)),
        requests=tuple(_priced(whole, REQUESTS, "requests", per=Decimal(1000))),
        transfers=tuple(_priced(whole, TRANSFERS, "transfer_bytes", per=Decimal(BYTES_PER_TB))),
        shardings=tuple(_shardings(whole, question)),
        findings=tuple(one for one in found if one.code in FINDINGS),
        findings_on=last,
        billed_through=through,
        plan=plan,
    )


def tier_classes(tier: CostGroup) -> list[str]:
    """The classes of charges that a tier is made of."""
    return [name for name, group in GROUP_OF_CLASS.items() if group is tier]


def _rows(project: Project, question: StorageQuestion) -> list[CostRow]:
    """Costs and measures by month and class."""
    classes = [*(name for tier in TIERS for name in tier_classes(tier)), *REQUESTS, *TRANSFERS]
    table = costs_grouped(
        project.organisation_id,
        group_by=("month", "x_cost_class"),
        basis=question.basis,
        start_on=question.start_on,
        end_on=question.end_on,
        project_id=project.pk,
        filters=[f"x_cost_class={name}" for name in dict.fromkeys(classes)],
    )
    return list(table.rows)


def _month(row: CostRow) -> date:
    return date.fromisoformat(f"{row.group[0]}-01")


def _by_class(rows: Sequence[CostRow]) -> dict[tuple[str, str], CostRow]:
    """Class and currency -> everything of all months."""
    whole = merged(
        CostRow(
            group=(row.group[1],),
            currency=row.currency,
            cost=row.cost,
            storage_tb_month=row.storage_tb_month,
            requests=row.requests,
            transfer_bytes=row.transfer_bytes,
            rows=row.rows,
        )
        for row in rows
    )
    return {(row.group[0] or "", row.currency): row for row in whole}


def _planned(
    plan: PlanRecord | None, question: StorageQuestion, through: date | None
) -> dict[tuple[date, CostGroup], Decimal] | None:
    """The plan's money by month and tier, of the days that are billed; None without such lines."""
    lines = [
        (found[1], line)
        for line in (plan.lines if plan else ())
        if (found := _PLAN_LINE.fullmatch(line.key))
    ]
    if not lines or through is None:
        return None
    planned: dict[tuple[date, CostGroup], Decimal] = {}
    for name, line in lines:
        for day, amount in planned_cost_by_day([line]).items():
            if not _is_in(day, question, through):
                continue
            key = (day.replace(day=1), CostGroup(f"storage_{name}"))
            planned[key] = EXACT.add(planned.get(key, Decimal(0)), amount)
    return planned


def _is_in(day: date, question: StorageQuestion, through: date) -> bool:
    starts = question.start_on is None or day >= question.start_on
    return starts and day <= through and (question.end_on is None or day < question.end_on)


def _tiers(
    rows: Sequence[CostRow],
    planned: Mapping[tuple[date, CostGroup], Decimal] | None,
    plan: PlanRecord | None,
) -> Iterable[TierMonth]:
    """Each tier of each month that has charges or a plan, by month; a plan has its own currency."""
    found: dict[tuple[date, CostGroup, str], list[CostRow]] = {}
    for row in rows:
        tier = GROUP_OF_CLASS.get(row.group[1] or "")
        if tier in TIERS:
            found.setdefault((_month(row), tier, row.currency), []).append(row)
    currency = plan.currency if plan else ""
    for month_on, tier in planned or {}:
        found.setdefault((month_on, tier, currency), [])
    order = {tier: place for place, tier in enumerate(TIERS)}
    for key in sorted(found, key=lambda key: (key[0], order[key[1]], key[2])):
        month_on, tier, of_currency = key
        own = found[key]
        stored = [row for row in own if row.group[1] != "retrieval"]
        in_plan = planned is not None and of_currency == currency
        yield TierMonth(
            month_on=month_on,
            tier=tier,
            currency=of_currency,
            storage_tb_month=_known(row.storage_tb_month for row in own),
            cost=_whole(row.cost for row in own),
            stored_cost=_whole(row.cost for row in stored) if stored else None,
            planned=(planned or {}).get((month_on, tier), Decimal(0)) if in_plan else None,
        )


def _known(values: Iterable[Decimal | None]) -> Decimal | None:
    total: Decimal | None = None
    for value in values:
        total = known_sum(total, value)
    return total


def _whole(values: Iterable[Decimal | None]) -> Decimal | None:
    total: Decimal | None = Decimal(0)
    for value in values:
        total = whole_sum(total, value)
    return total


def _price(cost: Decimal | None, quantity: Decimal | None, *, per: Decimal) -> Decimal | None:
    """The money of `per` units; None where cost or quantity is not known, or nothing was used."""
    if cost is None or not quantity:
        return None
    return divide(EXACT.multiply(cost, per), quantity)


def _priced(
    whole: Mapping[tuple[str, str], CostRow], classes: Sequence[str], measure: str, *, per: Decimal
) -> Iterable[Priced]:
    for name in classes:
        for (x_cost_class, currency), row in sorted(whole.items()):
            if x_cost_class == name:
                quantity: Decimal | None = getattr(row, measure)
                yield Priced(
                    x_cost_class=name,
                    currency=currency,
                    quantity=quantity,
                    cost=row.cost,
                    unit_price=_price(row.cost, quantity, per=per),
                )


def _shardings(
    whole: Mapping[tuple[str, str], CostRow], question: StorageQuestion
) -> Iterable[Sharding]:
    """What GET requests would cost if all objects were shards that are read so often a month.

    A TB that is stored for the month is one TB-month, so the bytes of a part of a month count
    in part.
    """
    for (name, currency), row in sorted(whole.items()):
        if name != "request_get":
            continue
        stored = _known(
            other.storage_tb_month
            for (kept, of), other in whole.items()
            if kept in READ_BY_GET and of == currency
        )
        price = _price(row.cost, row.requests, per=Decimal(1000))
        needed = would_cost = None
        if stored:
            needed = requests_for(
                int(EXACT.multiply(stored, Decimal(BYTES_PER_TB))),
                question.shard_megabytes * BYTES_PER_MEGABYTE,
                question.reads_per_month,
            )
        if needed is not None and price is not None and price >= 0:
            would_cost = request_cost(needed, Money.of(price, currency)).amount
        yield Sharding(
            currency=currency,
            requests=row.requests,
            needed=needed,
            cost=row.cost,
            would_cost=would_cost,
        )


def months_after(month_on: date) -> date:
    """The first day of the next month."""
    return (month_on + timedelta(days=32)).replace(day=1)

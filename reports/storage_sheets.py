"""The storage page's tables, with their links; no costs are read here."""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal
from typing import Final
from urllib.parse import urlencode

from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from billing.charge_words import BASIS_NAMES
from billing.finding_records import SpendFinding
from billing.finding_words import ASSUMPTIONS, WORDS
from billing.records import Basis
from billing.words import CLASS_NAMES
from formulae.money import exact_sum
from projects.models import Project
from reports.figures import group_name
from reports.sheets import Cell, Column, Kind, Line, Sheet
from reports.storage import (
    Priced,
    Sharding,
    StoragePage,
    TierMonth,
    months_after,
    tier_classes,
)
from ui.bar_charts import monthly_bar_figure
from ui.charts import Figure, Series

COLOURS: Final = {"storage_hot": "series-2", "storage_warm": "series-7", "storage_cold": "series-5"}
VERBS: Final = {
    "request_get": gettext_lazy("GET"),
    "request_put": gettext_lazy("PUT, POST, LIST"),
    "request_other": gettext_lazy("Other requests"),
}


def storage_sheets(project: Project, page: StoragePage) -> list[Sheet]:
    """Every table of the page, in its order."""
    facts = _facts(project, page)
    return [
        _tier_sheet(project, page, facts),
        _priced_sheet(project, page, page.requests, facts),
        _priced_sheet(project, page, page.transfers, facts),
        _saving_sheet(project, page, facts),
    ]


def _facts(project: Project, page: StoragePage) -> tuple[tuple[str, str], ...]:
    question = page.question
    facts = [
        (_("Project"), project.name),
        (_("Cost basis"), str(BASIS_NAMES[Basis(question.basis)])),
        (_("MB in a shard"), str(question.shard_megabytes)),
        (_("Reads of the whole store in a month"), str(question.reads_per_month)),
    ]
    days = ((_("First day"), question.start_on), (_("First day that is out"), question.end_on))
    facts += [(name, day.isoformat()) for name, day in days if day]
    if page.billed_through:
        facts.append((_("Billed through"), page.billed_through.isoformat()))
    return tuple(facts)


def _charges(
    project: Project, page: StoragePage, classes: Sequence[str], month_on: date | None = None
) -> str:
    """The address of the project's charges of some classes."""
    start, end = page.question.start_on, page.question.end_on
    if month_on is not None:
        start = max(start or month_on, month_on)
        end = min(end or months_after(month_on), months_after(month_on))
    pairs = [("group_by", "service_name"), ("basis", page.question.basis)]
    pairs += [("from", start.isoformat())] if start else []
    pairs += [("to", end.isoformat())] if end else []
    pairs += [] if start or end else [("month", "all")]
    pairs += [("filter", f"project={project.slug}")]
    pairs += [("filter", f"x_cost_class={name}") for name in classes]
    return f"{reverse('charges')}?{urlencode(pairs)}"


def _tier_sheet(project: Project, page: StoragePage, facts: tuple[tuple[str, str], ...]) -> Sheet:
    columns = [
        Column(title=_("Month")),
        Column(title=_("Tier")),
        Column(title=_("Currency"), in_files_only=True),
        Column(title=_("TB-months"), kind=Kind.NUMBER),
        Column(title=_("Cost"), kind=Kind.MONEY),
        Column(title=_("Planned, same days"), kind=Kind.MONEY),
        Column(title=_("Difference"), kind=Kind.MONEY),
        Column(title=_("Per TB-month"), kind=Kind.PRICE),
    ]
    return Sheet(
        key="tiers",
        title=_("Storage by tier"),
        columns=tuple(columns),
        lines=tuple(_tier_line(project, page, one) for one in page.tiers),
        totals=tuple(
            _tier_total([one for one in page.tiers if one.currency == currency], currency)
            for currency in dict.fromkeys(one.currency for one in page.tiers)
        ),
        facts=facts,
    )


def _tier_line(project: Project, page: StoragePage, one: TierMonth) -> Line:
    href = _charges(project, page, tier_classes(one.tier), one.month_on)
    return Line(
        currency=one.currency,
        cells=(
            Cell(value=f"{one.month_on:%Y-%m}"),
            Cell(value=group_name(one.tier)),
            Cell(value=one.currency),
            Cell(value=one.storage_tb_month),
            Cell(value=one.cost, href=href),
            Cell(value=one.planned),
            Cell(value=one.difference),
            Cell(value=one.price_per_tb_month),
        ),
    )


def _tier_total(tiers: Sequence[TierMonth], currency: str) -> Line:
    stored = [one.storage_tb_month for one in tiers if one.storage_tb_month is not None]
    return Line(
        currency=currency,
        cells=(
            Cell(value=_("Total {currency}").format(currency=currency)),
            Cell(value=""),
            Cell(value=currency),
            Cell(value=exact_sum(stored) if stored else None),
            Cell(value=_whole([one.cost for one in tiers])),
            Cell(value=_whole([one.planned for one in tiers])),
            Cell(value=_whole([one.difference for one in tiers])),
            Cell(value=None),
        ),
    )


def _whole(values: Sequence[Decimal | None]) -> Decimal | None:
    """The exact sum; None where a part is missing."""
    known = [value for value in values if value is not None]
    return exact_sum(known) if len(known) == len(values) else None


def _priced_sheet(
    project: Project,
    page: StoragePage,
    rows: Sequence[Priced],
    facts: tuple[tuple[str, str], ...],
) -> Sheet:
    """Requests by verb, or bytes by kind."""
    is_requests = rows is page.requests
    names = VERBS if is_requests else CLASS_NAMES
    lines = [
        Line(
            currency=one.currency,
            cells=(
                Cell(value=str(names[one.x_cost_class])),
                Cell(value=one.currency),
                Cell(value=one.quantity),
                Cell(value=one.cost, href=_charges(project, page, [one.x_cost_class])),
                Cell(value=one.unit_price),
            ),
        )
        for one in rows
    ]
    return Sheet(
        key="requests" if is_requests else "transfer",
        title=_("Requests by verb") if is_requests else _("Bytes moved"),
        columns=(
            Column(title=_("Verb") if is_requests else _("Kind")),
            Column(title=_("Currency"), in_files_only=True),
            Column(title=_("Requests"), kind=Kind.COUNT)
            if is_requests
            else Column(title=_("Bytes"), kind=Kind.BYTES),
            Column(title=_("Cost"), kind=Kind.MONEY),
            Column(title=_("Per 1,000 requests") if is_requests else _("Per TB"), kind=Kind.PRICE),
        ),
        lines=tuple(lines),
        totals=tuple(
            _priced_total([one for one in rows if one.currency == currency], currency)
            for currency in dict.fromkeys(one.currency for one in rows)
        ),
        facts=facts,
    )


def _priced_total(rows: Sequence[Priced], currency: str) -> Line:
    return Line(
        currency=currency,
        cells=(
            Cell(value=_("Total {currency}").format(currency=currency)),
            Cell(value=currency),
            Cell(value=_known([one.quantity for one in rows])),
            Cell(value=_whole([one.cost for one in rows])),
            Cell(value=None),
        ),
    )


def _known(values: Sequence[Decimal | None]) -> Decimal | None:
    known = [value for value in values if value is not None]
    return exact_sum(known) if known else None


def _saving_sheet(project: Project, page: StoragePage, facts: tuple[tuple[str, str], ...]) -> Sheet:
    return Sheet(
        key="savings",
        title=_("What could be saved"),
        columns=(
            Column(title=_("Change")),
            Column(title=_("What the bill shows")),
            Column(title=_("Currency"), in_files_only=True),
            Column(title=_("Costs now"), kind=Kind.MONEY),
            Column(title=_("Would save"), kind=Kind.MONEY),
        ),
        lines=(
            *(_sharding_line(project, page, one) for one in page.shardings),
            *(_finding_line(project, page, one) for one in page.findings),
        ),
        facts=facts,
    )


def _sharding_line(project: Project, page: StoragePage, one: Sharding) -> Line:
    question = page.question
    words = _(
        "{requests} GET requests; in shards of {megabytes} MB, the whole store read {reads} times "
        "a month needs {needed}."
    )
    shows = words.format(
        requests=_count(one.requests),
        megabytes=question.shard_megabytes,
        reads=question.reads_per_month,
        needed=_count(one.needed),
    )
    return Line(
        currency=one.currency,
        cells=(
            Cell(
                value=_("Objects packed into shards"),
                href=_charges(project, page, ["request_get"]),
            ),
            Cell(value=shows),
            Cell(value=one.currency),
            Cell(value=one.cost),
            Cell(value=one.saving),
        ),
    )


def _count(value: Decimal | int | None) -> str:
    return _("n/a") if value is None else f"{value:,.0f}"


def _finding_line(project: Project, page: StoragePage, one: SpendFinding) -> Line:
    """A finding of the newest month, by effective cost, whatever the page's basis."""
    words = WORDS[one.code]
    facts = {name: text or _("n/a") for name, text in one.facts.items()}
    parts = [f"{page.findings_on:%Y-%m}:", str(words.shows).format(**facts), str(words.do)]
    assumption = ASSUMPTIONS.get(one.assumption, "")
    if assumption:
        parts.append(f"({assumption})")
    pairs = [("basis", "effective"), ("month", f"{page.findings_on:%Y-%m}")]
    pairs += [("filter", f"project={project.slug}"), *(("filter", text) for text in one.filters)]
    return Line(
        currency=one.currency,
        cells=(
            Cell(value=_change(one.code), href=f"{reverse('charges')}?{urlencode(pairs)}"),
            Cell(value=" ".join(parts)),
            Cell(value=one.currency),
            Cell(value=one.cost),
            Cell(value=one.saving),
        ),
    )


def _change(code: str) -> str:
    return {
        "nat_bytes": _("A private endpoint instead of the NAT gateway"),
        "transfer_inter_region": _("Bucket and cluster in one region"),
        "hot_storage_unread": _("What nobody reads in a colder tier"),
    }[code]


def tier_figure(page: StoragePage) -> tuple[Figure, str] | None:
    """Money by month and tier in the currency of most rows, and this currency."""
    currencies = [one.currency for one in page.tiers]
    if not currencies:
        return None
    currency = max(sorted(set(currencies)), key=currencies.count)
    own = [one for one in page.tiers if one.currency == currency]
    months = sorted({one.month_on for one in own})
    costs = {
        (one.month_on, one.tier): None if one.cost is None else max(one.cost, Decimal(0))
        for one in own
    }
    stacked = [
        Series(
            name=group_name(tier),
            days=months,
            values=[costs.get((month, tier), Decimal(0)) for month in months],
            colour=COLOURS[tier.value],
        )
        for tier in dict.fromkeys(one.tier for one in own)
    ]
    return monthly_bar_figure(stacked, currency=currency), currency

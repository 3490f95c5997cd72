"""A delivery's months as its page shows them: their charges, versions, and whether they tie."""

from collections.abc import Sequence
from datetime import date
from typing import Any, Final
from urllib.parse import urlencode

from django.urls import reverse

from billing.cost_questions import MAX_FILTERS, Filter, written_filters
from billing.invoice_selectors import reconciliations
from billing.models import BillingPeriod, Delivery, DeliveryFile
from formulae.periods import month_from_label

_WORST_FIRST: Final = ("differs", "no_charges", "unknown", "not_stated", "ties")


def months_of(delivery: Delivery, *, sees_all: bool) -> list[dict[str, Any]]:
    """The report's months; with their links for those who see whole bills."""
    months = [dict(entry) for entry in delivery.report.get("periods", [])]
    if not sees_all or delivery.state != Delivery.State.PUBLISHED:
        return months
    periods = _published(delivery)
    ties: dict[date, list[str]] = {}
    for row in reconciliations(delivery.organisation_id, source_id=delivery.source_id):
        ties.setdefault(row.month_on, []).append(row.tie.value)
    for month in months:
        start_on = month_from_label(month["period"]).start.date()
        found = sorted(ties.get(start_on, []), key=_WORST_FIRST.index)
        month["tie"] = found[0] if found else ""
        month["charges_url"] = _charges_url(delivery, [month["period"]])
        if month["period"] in periods:
            month["versions_url"] = reverse("period_versions", args=[periods[month["period"]]])
    return months


def charges_url(delivery: Delivery) -> str:
    """The single charges of the delivery's files."""
    months = sorted(entry["period"] for entry in delivery.report.get("periods", []))
    return _charges_url(delivery, months)


def _charges_url(delivery: Delivery, months: Sequence[str]) -> str:
    """The charges of the delivery's files in some months, as many as an address can name."""
    names = tuple(delivery.files.values_list("name", flat=True)[:MAX_FILTERS])
    query = [("month", months[0] if len(months) == 1 else "all")]
    query += [
        ("filter", text) for text in written_filters([Filter(column="x_source_file", values=names)])
    ]
    return f"{reverse('charge_rows')}?{urlencode(query)}"


def _published(delivery: Delivery) -> dict[str, int]:
    """The published months of the delivery's source, by label, those of billed costs first."""
    periods = BillingPeriod.objects.filter(
        source_id=delivery.source_id, published_version__isnull=False
    )
    return {str(one): one.pk for one in periods.order_by("-dataset")}


def files_of(delivery: Delivery) -> list[tuple[DeliveryFile, str]]:
    """The delivery's files, each with the name of the archive that it lay in, if in one."""
    archives = delivery.origin.get("archives", {})
    return [
        (file, archives.get(file.sha256, "") if file.compression.startswith("zip:") else "")
        for file in delivery.files.all()
    ]

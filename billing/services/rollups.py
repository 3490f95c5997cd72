"""Rolls published charges up into daily costs by the allocation rules in force."""

from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.utils.translation import gettext as _

from billing.expressions import allocated, daily_costs
from billing.models import BillingPeriod, DailyCost, PeriodVersion, RuleSet
from billing.records import RuleRecord
from billing.selectors import newest_rule_set, rules_of
from billing.services.locking import lock_books
from jobs.records import JobContext
from lake.engine import open_engine

_COLUMNS = (
    "organisation_id",
    "version_id",
    "rule_set_id",
    "dataset",
    "has_tags",
    "is_estimated",
    "day",
    "project_id",
    "provider_name",
    "service_name",
    "service_category",
    "region_id",
    "sub_account_id",
    "charge_category",
    "x_cost_class",
    "x_accelerator",
    "billing_currency",
    "billed_cost",
    "effective_cost",
    "list_cost",
    "contracted_cost",
    "accelerator_h",
    "rows",
)


class Rules:
    """A rule set and its rules, read once."""

    def __init__(self, rule_set: RuleSet | None) -> None:
        self.rule_set = rule_set
        self.rules: tuple[RuleRecord, ...] = rules_of(rule_set)


def rules_in_force(organisation_id: UUID) -> Rules:
    """The newest rules. Call it with the books locked."""
    return Rules(newest_rule_set(organisation_id))


def write_daily_costs(version: PeriodVersion, rules: Rules) -> None:
    """Compute a version's daily costs and copy them in; call it with the books locked."""
    rows = daily_rows(version, rules.rules)
    rule_set_id = rules.rule_set.pk if rules.rule_set else None
    dataset = version.period.dataset
    names = ", ".join(_COLUMNS)
    table = DailyCost._meta.db_table
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY {table} ({names}) FROM STDIN") as copy,
    ):
        for row in rows:
            own = (version.organisation_id, version.pk, rule_set_id, dataset, False, False)
            copy.write_row((*own, *(row[name] for name in _COLUMNS[6:])))


def daily_rows(version: PeriodVersion, rules: tuple[RuleRecord, ...]) -> list[dict[str, Any]]:
    """A version's daily costs, from the lake."""
    paths = list(version.slices.order_by("path").values_list("path", flat=True))
    if not paths:
        return []
    with open_engine() as engine:
        return engine.rows(daily_costs(allocated(engine.table(paths), rules)))


def rebuild_daily_costs(context: JobContext) -> dict[str, Any]:
    """Roll every published version up again by the rules in force, all of it at once."""
    with transaction.atomic():
        lock_books(context.organisation_id)
        context.assert_still_mine()
        rules = rules_in_force(context.organisation_id)
        periods = BillingPeriod.objects.filter(
            organisation_id=context.organisation_id, published_version__isnull=False
        ).select_related("published_version")
        versions = [(str(one), one.published_version) for one in periods if one.published_version]
        total = sum(version.rows for _period, version in versions)
        done = 0
        for period, version in versions:
            version.daily_costs.all().delete()
            write_daily_costs(version, rules)
            done += version.rows
            context.report(done, total, _("Allocating {period}").format(period=period))
    number = rules.rule_set.number if rules.rule_set else 0
    return {"rule_set": number, "rows": done}

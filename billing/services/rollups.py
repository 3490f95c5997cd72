"""Rolls published charges up into daily costs by the allocation rules in force."""

from collections.abc import Iterator, Sequence
from typing import Any, Final
from uuid import UUID

from django.db import connection, transaction
from django.utils.translation import gettext as _

from billing.allocation_matching import rules_for_source
from billing.allocation_selectors import newest_rule_set, rules_of
from billing.allocation_shares import TARGET_KEYS, Shares
from billing.expressions import DAILY_KEYS, DAILY_MEASURES, allocated, daily_costs
from billing.lake_tables import stored_charges
from billing.models import BillingPeriod, DailyCost, PeriodVersion, RuleSet
from billing.records import COST_COLUMNS, RuleRecord
from billing.services.locking import lock_books
from jobs.records import JobContext
from lake.engine import open_engine

_OF_VERSION: Final = ("organisation_id", "version_id", "rule_set_id", "dataset")
_SPLIT: Final = (*COST_COLUMNS, *DAILY_MEASURES)
_OF_ROW: Final = (*DAILY_KEYS, *TARGET_KEYS, *_SPLIT, "rows")
_BATCH_ROWS: Final = 10_000


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
    rule_set_id = rules.rule_set.pk if rules.rule_set else None
    own = (version.organisation_id, version.pk, rule_set_id, version.period.dataset)
    names = ", ".join((*_OF_VERSION, *_OF_ROW))
    rows = daily_rows(version, rules.rules)  # asks the database now: COPY holds the connection
    table = DailyCost._meta.db_table
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY {table} ({names}) FROM STDIN") as copy,
    ):
        for row in rows:
            copy.write_row((*own, *(row[name] for name in _OF_ROW)))


def daily_rows(version: PeriodVersion, rules: tuple[RuleRecord, ...]) -> Iterator[dict[str, Any]]:
    """A version's daily costs, from the lake: once for each target of the rule that matched."""
    paths = list(version.slices.order_by("path").values_list("path", flat=True))
    own_rules = rules_for_source(rules, version.period.source.name)
    return _shared_rows(paths, own_rules)


def _shared_rows(
    paths: Sequence[str], own_rules: tuple[RuleRecord, ...]
) -> Iterator[dict[str, Any]]:
    if not paths:
        return
    shares = Shares(own_rules)
    with open_engine() as engine:
        charges = allocated(stored_charges(engine, paths), own_rules)
        for batch in engine.arrow(daily_costs(charges)).to_batches(max_chunksize=_BATCH_ROWS):
            for row in batch.to_pylist():
                yield from shares.shared(row, _SPLIT, position=row["rule_position"])


def rebuild_daily_costs(context: JobContext) -> dict[str, Any]:
    """Roll every published version up again by the rules in force, all of it at once."""
    with transaction.atomic():
        lock_books(context.organisation_id)
        context.assert_still_mine()
        rules = rules_in_force(context.organisation_id)
        periods = BillingPeriod.objects.filter(
            organisation_id=context.organisation_id, published_version__isnull=False
        ).select_related("published_version__period__source")
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

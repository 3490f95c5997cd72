"""Rolls published charges up into daily costs by the allocation rules in force."""

from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from typing import Any, Final
from uuid import UUID

import pyarrow as pa
from django.db import connection, transaction
from django.utils.translation import gettext as _
from pyarrow import csv

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

_SPLIT: Final = (*COST_COLUMNS, *DAILY_MEASURES)
_OF_ROW: Final = (*DAILY_KEYS, *TARGET_KEYS, *_SPLIT, "rows")
_BATCH_ROWS: Final = 10_000
_PLAIN: Final = csv.WriteOptions(include_header=False)


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
    own = {
        "organisation_id": version.organisation_id,
        "version_id": version.pk,
        "rule_set_id": rules.rule_set.pk if rules.rule_set else None,
        "dataset": version.period.dataset,
    }
    tables = daily_tables(version, rules.rules)  # asks the database now: COPY holds the connection
    name = DailyCost._meta.db_table
    with (
        connection.cursor() as cursor,
        cursor.copy(f"COPY {name} ({', '.join((*own, *_OF_ROW))}) FROM STDIN (FORMAT csv)") as copy,
    ):
        for table in tables:
            written = BytesIO()
            csv.write_csv(_with_constants(table.select(_OF_ROW), own), written, _PLAIN)
            copy.write(written.getbuffer())


def _with_constants(table: pa.Table, values: Mapping[str, Any]) -> pa.Table:
    """The table with these columns before its own."""
    for place, (name, value) in enumerate(values.items()):
        text = None if value is None else str(value)
        table = table.add_column(
            place, name, pa.repeat(pa.scalar(text, pa.string()), table.num_rows)
        )
    return table


def daily_rows(version: PeriodVersion, rules: tuple[RuleRecord, ...]) -> Iterator[dict[str, Any]]:
    """A version's daily costs, from the lake: once for each target of the rule that matched."""
    for table in daily_tables(version, rules):
        yield from table.to_pylist()


def daily_tables(version: PeriodVersion, rules: tuple[RuleRecord, ...]) -> Iterator[pa.Table]:
    """The same as tables of some rows each."""
    paths = list(version.slices.order_by("path").values_list("path", flat=True))
    own_rules = rules_for_source(rules, version.period.source.name)
    return _shared_tables(paths, own_rules)


def _shared_tables(paths: Sequence[str], own_rules: tuple[RuleRecord, ...]) -> Iterator[pa.Table]:
    if not paths:
        return
    shares = Shares(own_rules)
    with open_engine() as engine:
        charges = allocated(stored_charges(engine, paths), own_rules)
        found = engine.arrow(daily_costs(charges))
        for start in range(0, found.num_rows, _BATCH_ROWS):
            yield from shares.shared_tables(found.slice(start, _BATCH_ROWS), _SPLIT)


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

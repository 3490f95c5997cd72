"""The queries over a billing export, and what a table must look like to be one. No calls here."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from django.utils.translation import gettext as _

from billing.connectors.contract import ConnectorError

EVER: Final = date(1970, 1, 1)
STANDARD: Final = "gcp_billing_export_v1_"
DETAILED: Final = "gcp_billing_export_resource_v1_"
FOCUS: Final = "gcp_billing_export_focus_"
PREFIXES: Final = (STANDARD, DETAILED, FOCUS)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportTable:
    """A billing export: how its months, export times and partitions are called in SQL."""

    full_name: str
    kind_words: str
    location: str
    month_sql: str  # 2026-05
    newest_sql: str  # empty where the table does not say when a row was exported
    partition_sql: str  # empty for a view and a table without partitions

    @property
    def is_partitioned(self) -> bool:
        """Whether a query can leave days out."""
        return bool(self.partition_sql)


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthState:
    """What a table holds of one billing month: rows, newest export time, in which partitions."""

    month: str
    rows: int
    newest: datetime | None
    days: tuple[date, ...] = ()
    rows_outside: int = 0  # in partitions before the lookback: not part of the month

    @property
    def fingerprint(self) -> str:
        """Another text for every other state that the export tells apart."""
        return f"{self.newest.isoformat() if self.newest else ''}+{self.rows}"


@dataclass(slots=True, kw_only=True)
class _Growing:
    rows: int = 0
    newest: datetime | None = None
    days: set[date] = field(default_factory=set)
    rows_outside: int = 0


def table_of(table: Any, dataset: str) -> ExportTable:
    """How a google.cloud.bigquery.Table is asked.

    Raises:
        ConnectorError: it is no billing export.
    """
    full_name = f"{dataset}.{table.table_id}"
    fields = {field.name: field for field in table.schema}
    partition = _partition_sql(table)
    if "BillingPeriodStart" in fields and "BilledCost" in fields:
        return ExportTable(
            full_name=full_name,
            kind_words=_("FOCUS billing export"),
            location=table.location,
            month_sql="FORMAT_TIMESTAMP('%Y-%m', TIMESTAMP(BillingPeriodStart))",
            newest_sql="x_ExportTime" if "x_ExportTime" in fields else "",
            partition_sql=partition,
        )
    if {"invoice", "export_time", "cost", "sku"} <= set(fields):
        is_detailed = "resource" in fields
        return ExportTable(
            full_name=full_name,
            kind_words=_("detailed billing export")
            if is_detailed
            else _("standard billing export"),
            location=table.location,
            month_sql="CONCAT(SUBSTR(invoice.month, 1, 4), '-', SUBSTR(invoice.month, 5, 2))",
            newest_sql="export_time",
            partition_sql=partition,
        )
    raise ConnectorError(
        "settings",
        _("It has neither the columns of a Google billing export nor those of FOCUS."),
        object=full_name,
    )


def _partition_sql(table: Any) -> str:
    partitioning = table.time_partitioning
    if partitioning is None or table.table_type != "TABLE":
        return ""
    return f"DATE({partitioning.field})" if partitioning.field else "_PARTITIONDATE"


def states_query(table: ExportTable, *, day_from: date, month_from: str) -> str:
    """Rows and newest export time of each month in each partition: narrow columns only."""
    day = table.partition_sql or "CAST(NULL AS DATE)"
    newest = f"MAX({table.newest_sql})" if table.newest_sql else "CAST(NULL AS TIMESTAMP)"
    conditions = [f"{day} >= DATE '{day_from.isoformat()}'"] if table.is_partitioned else []
    if month_from:
        month = table.month_sql
        conditions.append(f"({month} >= '{month_start(month_from):%Y-%m}' OR {month} IS NULL)")
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    # Names and days are ours or were checked: nothing that a person typed stands in here as is.
    return (
        f"SELECT {table.month_sql} AS billing_month, {day} AS partition_day, "  # noqa: S608
        f"COUNT(*) AS row_count, {newest} AS newest "
        f"FROM `{table.full_name}`{where} GROUP BY 1, 2"
    )


def month_query(table: ExportTable, state: MonthState) -> str:
    """The rows of one month in the state that was seen, from its own partitions only."""
    conditions = [f"{table.month_sql} = '{month_start(state.month):%Y-%m}'"]
    if table.is_partitioned:
        days = ", ".join(f"DATE '{day.isoformat()}'" for day in state.days)
        conditions.insert(0, f"{table.partition_sql} IN ({days})")
    if table.newest_sql and state.newest is not None:
        newest = state.newest.astimezone(UTC).isoformat(sep=" ")
        conditions.append(f"{table.newest_sql} <= TIMESTAMP '{newest}'")
    return f"SELECT * FROM `{table.full_name}` WHERE {' AND '.join(conditions)}"  # noqa: S608


def months_of(
    rows: Iterable[Mapping[str, Any]], *, lookback_days: int | None
) -> Iterator[MonthState]:
    """The months in order; a partition too long before its month is counted apart."""
    found: dict[str, _Growing] = {}
    for row in rows:
        month, day = row["billing_month"] or "", row["partition_day"]
        one = found.setdefault(month, _Growing())
        if _is_outside(month, day, lookback_days):
            one.rows_outside += row["row_count"]
            continue
        one.rows += row["row_count"]
        if row["newest"] is not None:
            one.newest = max(one.newest or row["newest"], row["newest"])
        if day is not None:
            one.days.add(day)
    for month, one in sorted(found.items()):
        if one.rows:
            yield MonthState(
                month=month,
                rows=one.rows,
                newest=one.newest,
                days=tuple(sorted(one.days)),
                rows_outside=one.rows_outside,
            )


def _is_outside(month: str, day: date | None, lookback_days: int | None) -> bool:
    if not month or day is None or lookback_days is None:
        return False
    return day < month_start(month) - timedelta(days=lookback_days)


def month_start(month: str) -> date:
    """The first day of a month such as 2026-05.

    Raises:
        ConnectorError: the table names a month that is none.
    """
    try:
        return date.fromisoformat(f"{month}-01")
    except ValueError:
        raise ConnectorError(
            "manifest", _("The table names the month {month!r}.").format(month=month[:20])
        ) from None

"""Google's billing export in BigQuery: each billing month that changed, whole, as lines of CSV.

The months' states are read from two narrow columns; a month's rows are read from exactly those
partitions that hold some of it, up to its newest export time, so that a state can be read again.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final

from django.utils.translation import gettext as _

from billing.connectors.bigquery_client import BigQuery
from billing.connectors.bigquery_queries import (
    EVER,
    ExportTable,
    MonthState,
    month_query,
    month_start,
    months_of,
    states_query,
    table_of,
)
from billing.connectors.bigquery_rows import columns_of, csv_chunks
from billing.connectors.bigquery_settings import BigQuerySettings
from billing.connectors.contract import (
    LIST,
    MANIFEST,
    REACH,
    READ,
    CheckReport,
    CheckStep,
    Connection,
    ConnectorError,
    JsonObject,
    ObjectRef,
    Unit,
)

PART_ROWS: Final = 250_000
PAGE_ROWS: Final = 20_000
CHECKED_DAYS: Final = 31


class BigQueryConnector:
    """A billing export table, its detailed sister or a FOCUS view or table."""

    def __init__(self, connection: Connection) -> None:
        self._settings = BigQuerySettings.of(connection.settings, connection.allowed)
        self._bigquery = BigQuery(settings=self._settings, secret=connection.secret)
        self._table: ExportTable | None = None
        self._states: dict[str, MonthState] = {}
        self._jobs: dict[MonthState, str] = {}

    def check(self) -> CheckReport:
        """Sign in, look the table up, try the query without running it, then read the months."""
        steps: list[CheckStep] = []
        tries = (
            (REACH, self._sign_in),
            (LIST, self._look),
            (MANIFEST, self._try),
            (READ, self._read),
        )
        for name, attempt in tries:
            try:
                steps.append(CheckStep(name=name, ok=True, message=attempt()))
            except ConnectorError as error:
                failed = CheckStep(
                    name=name,
                    ok=False,
                    message=str(error),
                    missing_permission=error.missing_permission,
                )
                return CheckReport(steps=(*steps, failed))
        return CheckReport(steps=tuple(steps))

    def units(self, watermark: JsonObject) -> Iterator[Unit]:
        """One unit a billing month, oldest first; later pulls look at the trailing months only."""
        table = self._export()
        since = self._since(watermark)
        sql = states_query(table, day_from=self._day_from(since), month_from=since)
        rows = self._bigquery.rows(sql, table)
        states = [
            state
            for state in months_of(rows, lookback_days=self._settings.lookback_days)
            if state.month >= since
        ]
        self._states.update((state.month, state) for state in states)
        newest = max((one.newest for one in states if one.newest is not None), default=None)
        common = self._watermark(watermark, states, newest)
        return iter([self._unit(table, state, common) for state in states])

    def open(self, object: ObjectRef) -> Iterator[bytes]:
        """The rows of one part, page by page."""
        month, number = _month_and_part(object)
        state = self._state_of(month)
        if state.fingerprint != object.etag:
            raise ConnectorError("changed", _("The month changed meanwhile."), object=object.key)
        first = number * PART_ROWS
        count = min(PART_ROWS, state.rows - first)
        found = self._bigquery.part(
            self._job_of(state), self._export(), first=first, count=count, page_rows=PAGE_ROWS
        )
        if found.total_rows != state.rows:
            raise ConnectorError("changed", _("The month changed meanwhile."), object=object.key)
        yield from self._bigquery.guarded(
            csv_chunks(columns_of(found.schema), found.pages()), self._export()
        )
        if found.rows_read != count:
            raise ConnectorError("changed", _("Rows are missing."), object=object.key)

    def _sign_in(self) -> str:
        return _("Signed in as {who}.").format(who=self._bigquery.sign_in())

    def _look(self) -> str:
        table = self._export()
        if table.is_partitioned:
            return _("{table} is a {kind}.").format(table=table.full_name, kind=table.kind_words)
        return _(
            "{table} is a {kind} without partitions: each pull reads its columns from end to end."
        ).format(table=table.full_name, kind=table.kind_words)

    def _try(self) -> str:
        """What the first pull's look at the months would read, against the limit."""
        table = self._export()
        sql = states_query(table, day_from=self._day_from(self._since({})), month_from="")
        estimate_bytes = self._bigquery.estimate_bytes(sql, table)
        return _(
            "Queries may run. Looking at every month reads {estimate} GB; the limit of one query "
            "is {limit} GB."
        ).format(
            estimate=f"{estimate_bytes / 1e9:.3f}",
            limit=f"{self._settings.max_query_bytes / 1e9:g}",
        )

    def _read(self) -> str:
        table = self._export()
        first = self._bigquery.today() - timedelta(days=CHECKED_DAYS)
        sql = states_query(table, day_from=first, month_from=f"{first:%Y-%m}")
        states = list(months_of(self._bigquery.rows(sql, table), lookback_days=None))
        if not states:
            return _("The table can be read; it holds nothing of the last {days} days.").format(
                days=CHECKED_DAYS
            )
        newest = states[-1]
        return _(
            "The table can be read: {rows} rows of {month} so far, exported until {at}."
        ).format(rows=newest.rows, month=newest.month, at=_minute(newest.newest))

    def _export(self) -> ExportTable:
        if self._table is None:
            self._table = table_of(self._bigquery.table(), self._settings.dataset)
        return self._table

    def _since(self, watermark: JsonObject) -> str:
        """The first month to look at: the trailing ones once all older months are here."""
        if not watermark.get("whole") or not watermark.get("export_time"):
            return self._settings.from_month
        newest = datetime.fromisoformat(str(watermark["export_time"]))
        trailing = newest.date() - timedelta(days=self._settings.trailing_days)
        return max(f"{trailing:%Y-%m}", self._settings.from_month)

    def _day_from(self, since: str) -> Any:
        if not since or self._settings.lookback_days is None:
            return EVER
        return month_start(since) - timedelta(days=self._settings.lookback_days)

    def _watermark(
        self, known: JsonObject, states: list[MonthState], newest: datetime | None
    ) -> dict[str, Any]:
        """What every delivered month tells of this look; `whole` once no older month is owed."""
        if newest is None:
            return {}
        trailing = f"{newest.date() - timedelta(days=self._settings.trailing_days):%Y-%m}"
        older = [state for state in states if state.month < trailing]
        whole = bool(known.get("whole")) or all(
            known.get(state.month) == state.fingerprint for state in older
        )
        return {"export_time": newest.isoformat(), **({"whole": True} if whole else {})}

    def _unit(self, table: ExportTable, state: MonthState, common: dict[str, Any]) -> Unit:
        if not state.month:
            words = _("{rows} rows name no invoice month.").format(rows=state.rows)
            problem = ConnectorError("manifest", words, object=table.full_name)
            return Unit(
                key=f"{table.full_name}/",
                fingerprint=state.fingerprint,
                objects=(),
                problem=problem,
            )
        parts = range(-(-state.rows // PART_ROWS))
        return Unit(
            key=f"{table.full_name}/{state.month}",
            fingerprint=state.fingerprint,
            objects=tuple(
                ObjectRef(key=f"{state.month}/part-{part + 1:04}.csv", etag=state.fingerprint)
                for part in parts
            ),
            period=state.month,
            version_at=state.newest,
            origin={
                "table": table.full_name,
                "rows": state.rows,
                "export_time": state.newest.isoformat() if state.newest else None,
                **({"rows_before_lookback": state.rows_outside} if state.rows_outside else {}),
            },
            watermark={state.month: state.fingerprint, **common},
        )

    def _state_of(self, month: str) -> MonthState:
        if month not in self._states:
            list(self.units({}))
        if month not in self._states:
            raise ConnectorError("missing", _("The month is gone from the table."), object=month)
        return self._states[month]

    def _job_of(self, state: MonthState) -> str:
        """The query of a month's rows, run once for all parts."""
        if state not in self._jobs:
            table = self._export()
            self._jobs[state] = self._bigquery.run(month_query(table, state), table)
        return self._jobs[state]


def _month_and_part(ref: ObjectRef) -> tuple[str, int]:
    month, _slash, name = ref.key.partition("/")
    digits = name.removeprefix("part-").removesuffix(".csv")
    if not digits.isdecimal() or int(digits) < 1:
        raise ConnectorError("key", _("No such part."), object=ref.key)
    return month, int(digits) - 1


def _minute(instant: datetime | None) -> str:
    return f"{instant:%Y-%m-%d %H:%M} UTC" if instant is not None else "?"

"""The order of the day: what Celery beat rings, and how often."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of the day's order."""

    name: str
    task: str
    every_s: float


SCHEDULE = (
    # Whatever a lost message or a killed worker left behind is rung again.
    Entry(name="ring waiting jobs", task="jobs.ring", every_s=10.0),
    # What doors stored is booked even when the ring for it was lost.
    Entry(name="book waiting readings", task="carbon.book_waiting", every_s=10.0),
    # Hours that are over are closed even when no further sample of their site arrives.
    Entry(name="close hours of energy", task="carbon.close_open_hours", every_s=300.0),
    # Prometheus-like servers are asked for energy and power.
    Entry(name="pull power from servers", task="carbon.pull_due_servers", every_s=300.0),
    # A source says how often it is pulled; this looks whose time has come.
    Entry(name="pull due sources", task="billing.pull_due_sources", every_s=300.0),
    # Grid intensity is told by the hour, and revised; a source that asked for rest gets it.
    Entry(name="pull grid intensity", task="carbon.pull_due_intensity", every_s=1800.0),
    # A killed import leaves files that no row refers to; they go after an hour.
    Entry(name="sweep the lake", task="billing.sweep_lake", every_s=3600.0),
    # List prices change seldom: once a week is often enough to notice.
    Entry(name="refresh price feeds", task="billing.refresh_price_books", every_s=604_800.0),
    # The bytes of power files wait for their job; a week later nothing reads them any more.
    Entry(name="sweep power files", task="carbon.sweep_files", every_s=86_400.0),
    # The day before is over: own hardware is charged for it, and late readings restate.
    Entry(name="charge own hardware", task="planning.charge_own_hardware", every_s=86_400.0),
)

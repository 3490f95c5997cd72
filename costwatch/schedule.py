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
)

"""The charts of a run's page as figures: tokens against the plan, utilisation, step time, loss."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final

from django.utils.translation import gettext as _

from runs.progress_moments import Moment, moment_of
from runs.progress_records import EventKind, RunEvent
from runs.progress_words import event_name
from runs.records import RunRecord
from ui.charts import Marker, Series, TimeChart, flat_line, line_figure

MARKED: Final = (EventKind.RESTART, EventKind.ROLLBACK, EventKind.STOP)
MOST_MARKERS: Final = 12
PER_CENT: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A figure with what a page says of it."""

    key: str
    title: str
    help: str
    label: str
    figure: dict[str, Any]


def charts_of(
    run: RunRecord, moments: Sequence[Moment], events: Sequence[RunEvent], denominator: str
) -> list[Chart]:
    """Those charts for which something is known."""
    drawn = _Drawn(run=run, moments=moments, markers=_markers(events, moments))
    found = [
        drawn.tokens(),
        drawn.utilisation(denominator),
        drawn.step_time(),
        drawn.loss(),
    ]
    return [chart for chart in found if chart is not None]


def _markers(events: Sequence[RunEvent], moments: Sequence[Moment]) -> list[Marker]:
    """Restarts, rollbacks and stops, the last ones where there are many."""
    told = [event for event in events if event.kind in MARKED]
    return [
        Marker(day=moment_of(event.at, moments), label=event_name(event.kind))
        for event in told[-MOST_MARKERS:]
    ]


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Drawn:
    run: RunRecord
    moments: Sequence[Moment]
    markers: Sequence[Marker]

    def _series(self, name: str, field: str, colour: str, *, factor: float = 1) -> Series | None:
        values = [_finite(getattr(one, field)) for one in self.moments]
        if all(value is None for value in values):
            return None
        return Series(
            name=name,
            days=[one.at for one in self.moments],
            values=[None if value is None else value * factor for value in values],
            colour=colour,
        )

    def _chart(
        self, lines: Sequence[Series | None], unit: str, references: Sequence[Series] = ()
    ) -> dict[str, Any]:
        known = [line for line in lines if line is not None]
        chart = TimeChart(lines=known, references=references, markers=self.markers)
        return line_figure(chart, unit=unit)

    def tokens(self) -> Chart | None:
        """Tokens trained, beside the way to the number planned."""
        trained = self._series(_("Trained"), "tokens_total", "series-1")
        if trained is None:
            return None
        way, references = self._planned()
        note = _("Net of rollbacks.")
        if way is not None:
            note = _("Net of rollbacks; dotted, the even way to the number planned.")
        return Chart(
            key="tokens",
            title=_("Tokens"),
            help=note,
            label=_("Tokens trained over time; the table below has the same numbers"),
            figure=self._chart([trained, way], _("tokens"), references),
        )

    def _planned(self) -> tuple[Series | None, list[Series]]:
        """The even way from the run's start to its end, else a level."""
        planned = self.run.tokens_planned
        if planned is None:
            return None, []
        first, last = self.moments[0].at, self.moments[-1].at
        if self.run.start is None or self.run.end is None:
            name = _("planned")
            return None, [flat_line(name, planned, starts_on=first, ends_on=last)]
        ends = (self.run.start, self.run.end)
        days: list[date] = [moment_of(one, self.moments) for one in ends]
        whole = (ends[1] - ends[0]).total_seconds()
        if last < days[1]:  # drawn up to where the run has come
            days[1] = last
            reached = _instant_like(last, ends[1])
            share = max(0.0, (reached - ends[0]).total_seconds() / whole)
            return Series(
                name=_("Even way to the plan"), days=days, values=[0, planned * share]
            ), []
        return Series(name=_("Even way to the plan"), days=days, values=[0, planned]), []

    def utilisation(self, denominator: str) -> Chart | None:
        """MFU of all allocated time, and inside steps."""
        whole = self._series(
            _("Of all allocated time"), "mfu_fraction", "series-1", factor=PER_CENT
        )
        inside = self._series(_("Inside steps"), "step_mfu_fraction", "series-2", factor=PER_CENT)
        if whole is None and inside is None:
            return None
        return Chart(
            key="mfu",
            title=_("Model FLOP utilisation (MFU)"),
            help=denominator,
            label=_("Utilisation over time; the table below has the same numbers"),
            figure=self._chart([whole, inside], "%"),
        )

    def step_time(self) -> Chart | None:
        """The time of a step: the middle and the slow ones."""
        lines = [
            self._series("P50", "p50_s", "series-1"),
            self._series("P90", "p90_s", "series-2"),
            self._series("P99", "p99_s", "series-4"),
        ]
        if lines[0] is None:
            return None
        return Chart(
            key="step-time",
            title=_("Step time"),
            help=_("Half of the steps reported take longer than P50, one in a hundred than P99."),
            label=_("Step time over time; the table below has the same numbers"),
            figure=self._chart(lines, "s"),
        )

    def loss(self) -> Chart | None:
        """The loss as last reported."""
        line = self._series(_("Loss"), "loss", "series-5")
        if line is None:
            return None
        return Chart(
            key="loss",
            title=_("Loss"),
            help=_("The last one reported in each step of the axis."),
            label=_("Loss over time; the table below has the same numbers"),
            figure=self._chart([line], _("loss")),
        )


def _instant_like(day: date, other: datetime) -> datetime:
    """A place on the axis as an instant."""
    plain = day if isinstance(day, datetime) else datetime(day.year, day.month, day.day)  # noqa: DTZ001
    return plain.replace(tzinfo=other.tzinfo)

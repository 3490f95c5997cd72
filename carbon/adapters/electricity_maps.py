"""Electricity Maps, API v3: hours of a zone, direct or lifecycle. No tables.

History is the last 24 hours and free; past-range reaches back, ten days a question, in paid plans.
Without `shouldUseFallbackCallerLookup=false` an unknown zone is answered with the caller's own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.utils.translation import gettext as _

from carbon.adapters.intensity_points import (
    CHECKING,
    HOUR,
    PULLING,
    Check,
    IntensityError,
    IntensityPoint,
    Told,
    Window,
    chunks,
    documents,
    floor_hour,
    instant,
    number,
    settled,
)
from projects.web_client import Limits, Request, WebError, ask

BASE_URL: Final = "https://api.electricitymaps.com"
LONGEST_RANGE: Final = timedelta(days=10)
HISTORY: Final = timedelta(hours=24)
_NO_PLAN: Final = ("unauthorised", "forbidden", "refused")


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectricityMaps:
    """The service, asked with a token for these bases."""

    token: str
    bases: tuple[str, ...]
    base_url: str = BASE_URL
    limits: Limits = PULLING

    def pull(self, window: Window) -> Told:
        """The hours of a window: history for the last day, past-range for what lies before."""
        recent_from = floor_hour(window.now) - HISTORY + HOUR
        points: list[IntensityPoint] = []
        notes: list[str] = []
        for basis in self.bases:
            if window.end > recent_from:
                points += self._points("history", "history", window, basis=basis)
            if window.start < recent_from:
                try:
                    points += self._past(window, basis=basis, until=recent_from)
                except IntensityError as error:
                    if error.code not in _NO_PLAN or not points:
                        raise
                    notes.append(_no_past(error))
        told = settled(points, window)
        return Told(points=told.points, notes=(*told.notes, *dict.fromkeys(notes)))

    def _past(self, window: Window, *, basis: str, until: datetime) -> list[IntensityPoint]:
        end = min(window.end, until)
        older = Window(zone=window.zone, start=window.start, end=end, now=window.now)
        found: list[IntensityPoint] = []
        for part in chunks(older, LONGEST_RANGE):
            query = {"start": _text(part.start), "end": _text(part.end)}
            found += self._points("past-range", "data", part, basis=basis, more=query)
        return found

    def _points(
        self,
        path: str,
        name: str,
        window: Window,
        *,
        basis: str,
        more: Mapping[str, str] | None = None,
    ) -> list[IntensityPoint]:
        answer = self._ask(path, window.zone, basis=basis, more=more, limits=self.limits)
        return [
            point
            for row in documents(answer, name)
            if (point := _point(row, window, basis)) is not None
        ]

    def _ask(
        self,
        path: str,
        zone: str,
        *,
        basis: str,
        limits: Limits,
        more: Mapping[str, str] | None = None,
    ) -> Any:
        """One question; an answer about another zone or with other factors is refused."""
        query = {
            "zone": zone,
            "emissionFactorType": basis,
            "shouldUseFallbackCallerLookup": "false",
            **(more or {}),
        }
        request = Request(
            url=f"{self.base_url.rstrip('/')}/v3/carbon-intensity/{path}",
            query=query,
            headers={"auth-token": self.token},
        )
        try:
            answer = ask(request, limits)
        except WebError as error:
            raise IntensityError.of(error) from error
        told = answer.get("zone") if isinstance(answer, dict) else None
        if told != zone:
            raise IntensityError(
                "wrong_zone",
                _("Asked for the zone {zone}, the answer is about {told}: nothing taken.").format(
                    zone=zone, told=repr(told)
                ),
            )
        return answer

    def check(self, zones: Sequence[str], *, now: datetime) -> list[Check]:
        """Ask the newest hour of each zone, then whether the plan reaches back."""
        steps: list[Check] = []
        for zone in zones:
            try:
                answer = self._ask("latest", zone, basis=self.bases[0], limits=CHECKING)
            except IntensityError as error:
                steps.append(Check(about=zone, ok=False, message=_in_words(error, zone)))
                if error.code == "unauthorised" or not error.permanent:
                    return steps  # the others would end alike, and somebody waits
                continue
            words = _("{value} g/kWh at {at}.").format(
                value=answer.get("carbonIntensity"), at=answer.get("datetime")
            )
            steps.append(Check(about=zone, ok=True, message=words))
        if steps and all(step.ok for step in steps):
            steps.append(self._check_past(zones[0], now))
        return steps

    def _check_past(self, zone: str, now: datetime) -> Check:
        start = floor_hour(now) - timedelta(days=3)
        query = {"start": _text(start), "end": _text(start + HOUR)}
        about = _("Past hours")
        try:
            self._ask("past-range", zone, basis=self.bases[0], more=query, limits=CHECKING)
        except IntensityError as error:
            message = _no_past(error) if error.code in _NO_PLAN else error.message
            return Check(about=about, ok=False, message=message)
        return Check(about=about, ok=True, message=_("Past hours can be read."))


def _point(row: Mapping[str, Any], window: Window, basis: str) -> IntensityPoint | None:
    """An hour of an answer; None where it has no value."""
    told_basis = row.get("emissionFactorType", basis)
    if row.get("zone", window.zone) != window.zone or told_basis != basis:
        raise IntensityError(
            "wrong_zone",
            _("Asked for {zone}, {basis}; an hour of the answer is of {told}, {other}.").format(
                zone=window.zone, basis=basis, told=row.get("zone"), other=told_basis
            ),
        )
    value = number(row.get("carbonIntensity"))
    if value is None:
        return None
    is_estimated = bool(row.get("isEstimated", False))
    updated = row.get("updatedAt")
    told_at = instant(updated, "updatedAt") if updated else None
    return IntensityPoint(
        zone=window.zone,
        hour=floor_hour(instant(row.get("datetime"), "datetime")),
        basis=basis,
        value_g_per_kwh=value,
        is_estimated=is_estimated,
        method=str(row.get("estimationMethod") or "")[:80] if is_estimated else "",
        # A clock that runs ahead must not outrank what is told later.
        told_at=min(told_at, window.now) if told_at else None,
    )


def _text(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%S}.000Z"


def _no_past(error: IntensityError) -> str:
    return _(
        "This token may read the last 24 hours only: hours before stay with the next source or the "
        "yearly factor ({why})"
    ).format(why=error.message)


def _in_words(error: IntensityError, zone: str) -> str:
    if error.code == "unauthorised":
        return _("The token is not accepted: copy it again from your account. ({why})").format(
            why=error.message
        )
    if error.code in ("forbidden", "not_found", "refused"):
        return _("The token may not read {zone}, or there is no such zone. ({why})").format(
            zone=zone, why=error.message
        )
    return error.message

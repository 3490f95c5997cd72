"""Great Britain's Carbon Intensity API: half hours of the national grid, made hours. No tables.

No key; CC BY 4.0. Direct emissions, losses of transmission and distribution included. Where the
actual value is missing the forecast stands in and the hour is marked estimated.
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
    hourly_means,
    instant,
    number,
    settled,
)
from projects.web_client import Limits, Request, WebError, ask

BASE_URL: Final = "https://api.carbonintensity.org.uk"
ZONE: Final = "GB"
LONGEST_RANGE: Final = timedelta(days=13)  # the service answers up to 14
LOSSES: Final = "with losses of the grid"  # so that nobody adds them under scope 3 again
HALF_HOUR: Final = timedelta(minutes=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class UkCarbonIntensity:
    """The service; it asks for no credential."""

    base_url: str = BASE_URL
    limits: Limits = PULLING

    def pull(self, window: Window) -> Told:
        """The hours of a window, the mean of two half hours each."""
        if window.zone != ZONE:
            raise IntensityError(
                "wrong_zone",
                _("This service knows the zone {zone} only, not {asked}.").format(
                    zone=ZONE, asked=window.zone
                ),
            )
        points: list[IntensityPoint] = []
        notes: list[str] = []
        for part in chunks(window, LONGEST_RANGE):
            found, broken = self._hours(part, self.limits)
            points += found
            if broken:
                notes.append(_("{count} hours lack a half and were left out.").format(count=broken))
        told = settled(points, window)
        return Told(points=told.points, notes=(*told.notes, *notes))

    def _hours(self, window: Window, limits: Limits) -> tuple[list[IntensityPoint], int]:
        """Hours whose two halves are known, and how many lack one."""
        url = f"{self.base_url.rstrip('/')}/intensity/{_text(window.start)}/{_text(window.end)}"
        try:
            answer = ask(Request(url=url), limits)
        except WebError as error:
            raise IntensityError.of(error) from error
        values: dict[datetime, float] = {}
        forecast: set[datetime] = set()
        for row in documents(answer, "data"):
            start = instant(row.get("from"), "from")
            if not window.start <= start < window.end or start + HOUR > window.now + HALF_HOUR:
                continue  # the half hour before the window is answered too; the future is no fact
            value, is_forecast = _value(row)
            if value is not None:
                values[start] = value
                if is_forecast:
                    forecast.add(floor_hour(start))
        means, broken = hourly_means(values, step=HALF_HOUR)
        return [
            IntensityPoint(
                zone=ZONE,
                hour=hour,
                basis="direct",
                value_g_per_kwh=value,
                is_estimated=hour in forecast,
                method=f"forecast, {LOSSES}" if hour in forecast else LOSSES,
            )
            for hour, value in means.items()
        ], broken

    def check(self, zones: Sequence[str], *, now: datetime) -> list[Check]:
        """Ask the last three hours."""
        wrong = [zone for zone in zones if zone != ZONE]
        if wrong:
            words = _("This service knows the zone {zone} only.").format(zone=ZONE)
            return [Check(about=zone, ok=False, message=words) for zone in wrong]
        end = floor_hour(now)
        window = Window(zone=ZONE, start=end - 3 * HOUR, end=end, now=now)
        try:
            hours, _broken = self._hours(window, CHECKING)
        except IntensityError as error:
            return [Check(about=ZONE, ok=False, message=error.message)]
        if not hours:
            return [Check(about=ZONE, ok=False, message=_("No hour of the last three is there."))]
        newest = max(hours, key=lambda one: one.hour)
        words = _("{value} g/kWh at {at}.").format(
            value=newest.value_g_per_kwh, at=f"{newest.hour:%Y-%m-%dT%H:%MZ}"
        )
        return [Check(about=ZONE, ok=True, message=words)]


def _value(row: Mapping[str, Any]) -> tuple[float | None, bool]:
    """The actual value, else the forecast one and that it is."""
    told = row.get("intensity")
    if not isinstance(told, dict):
        return None, False
    actual = number(told.get("actual"))
    return (actual, False) if actual is not None else (number(told.get("forecast")), True)


def _text(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%MZ}"

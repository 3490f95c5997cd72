"""WattTime, API v3: average rates for the books, marginal ones for advice. No tables.

AOER (average operating emissions rate) is hourly; MOER (marginal) comes every five minutes and is
never booked. Both are direct CO2 of operation, in pounds per MWh.
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from django.utils.translation import gettext as _

from carbon.adapters.intensity_points import (
    CHECKING,
    PULLING,
    Check,
    IntensityError,
    IntensityPoint,
    Told,
    Window,
    chunks,
    documents,
    hourly_means,
    instant,
    number,
    settled,
)
from formulae.units import g_per_kwh_from_lb_per_megawatt_h
from projects.web_client import Limits, Request, WebError, ask

BASE_URL: Final = "https://api.watttime.org"
LONGEST_RANGE: Final = timedelta(days=30)  # the service answers up to 32
TOKEN_LIVES: Final = timedelta(minutes=25)  # 30 by the service
UNITS: Final = "lbs_co2_per_mwh"
SIGNALS: Final = {"co2_aoer": "average", "co2_moer": "marginal"}
_NO_ACCESS: Final = ("forbidden", "not_found", "refused")


@dataclass(slots=True, kw_only=True)
class WattTime:
    """The service, asked with a user name and password for these signals."""

    username: str
    password: str
    signals: tuple[str, ...] = ("co2_aoer", "co2_moer")
    base_url: str = BASE_URL
    limits: Limits = PULLING
    _token: tuple[str, datetime] | None = field(default=None, repr=False)

    def pull(self, window: Window) -> Told:
        """Average and marginal hours of a window; a signal without access is said, not missed."""
        points: list[IntensityPoint] = []
        notes: list[str] = []
        refused: IntensityError | None = None
        for signal in self.signals:
            try:
                for part in chunks(window, LONGEST_RANGE):
                    found, said = self._hours(part, signal)
                    points += found
                    notes += said
            except IntensityError as error:
                if error.code not in _NO_ACCESS:
                    raise
                refused = error
                notes.append(_no_access(signal, window.zone, error))
        if refused is not None and not points:
            raise IntensityError("no_access", notes[-1])
        told = settled(points, window)
        return Told(points=told.points, notes=(*told.notes, *dict.fromkeys(notes)))

    def _hours(self, window: Window, signal: str) -> tuple[list[IntensityPoint], list[str]]:
        answer = self._ask(
            "/v3/historical",
            {
                "region": window.zone,
                "start": _text(window.start),
                "end": _text(window.end),
                "signal_type": signal,
                "include_imputed_marker": "true",
            },
            now=window.now,
        )
        step = _checked(answer, window.zone, signal)
        values: dict[datetime, float] = {}
        imputed: set[datetime] = set()
        for row in documents(answer, "data"):
            value = number(row.get("value"))
            if value is not None:
                at = instant(row.get("point_time"), "point_time")
                values[at] = g_per_kwh_from_lb_per_megawatt_h(value)
                if row.get("imputed_data_used"):
                    imputed.add(at.replace(minute=0, second=0, microsecond=0))
        means, broken = hourly_means(values, step=step)
        notes = (
            [_("{count} hours of {signal} are not whole and were left out.").format(
                count=broken, signal=signal
            )]
            if broken
            else []
        )  # fmt: skip
        points = [
            IntensityPoint(
                zone=window.zone,
                hour=hour,
                basis="direct",
                signal=SIGNALS[signal],
                value_g_per_kwh=value,
                is_estimated=hour in imputed,
                method=f"{signal}, imputed" if hour in imputed else signal,
            )
            for hour, value in means.items()
        ]
        return points, notes

    def _ask(
        self, path: str, query: Mapping[str, str], *, now: datetime, limits: Limits | None = None
    ) -> Any:
        bounds = limits or self.limits
        request = Request(
            url=f"{self.base_url.rstrip('/')}{path}",
            query=query,
            headers={"Authorization": f"Bearer {self._login(now, bounds)}"},
        )
        try:
            return ask(request, bounds)
        except WebError as error:
            raise IntensityError.of(error) from error

    def _login(self, now: datetime, bounds: Limits) -> str:
        """A token that still lives; a new one where none does."""
        if self._token is not None and now < self._token[1]:
            return self._token[0]
        secret = base64.b64encode(f"{self.username}:{self.password}".encode()).decode()
        request = Request(
            url=f"{self.base_url.rstrip('/')}/login", headers={"Authorization": f"Basic {secret}"}
        )
        try:
            answer = ask(request, bounds)
        except WebError as error:
            if error.code in ("unauthorised", "forbidden"):
                words = _("WattTime does not accept this user name and password. ({why})")
                raise IntensityError("unauthorised", words.format(why=error.message)) from error
            raise IntensityError.of(error) from error
        token = answer.get("token") if isinstance(answer, dict) else None
        if not isinstance(token, str) or not token:
            raise IntensityError("wrong_shape", _("WattTime's login gave no token."))
        self._token = (token, now + TOKEN_LIVES)
        return token

    def check(self, zones: Sequence[str], *, now: datetime) -> list[Check]:
        """Sign in, then see which of the regions and signals the account may read."""
        try:
            answer = self._ask("/v3/my-access", {}, now=now, limits=CHECKING)
            access = _access(answer)
        except IntensityError as error:
            return [Check(about=_("Sign in"), ok=False, message=error.message)]
        steps = [Check(about=_("Sign in"), ok=True, message=_("Signed in."))]
        for zone in zones:
            for signal in self.signals:
                may = zone in access.get(signal, frozenset())
                words = _("may be read") if may else _no_access(signal, zone, None)
                needed = signal == "co2_aoer"
                steps.append(Check(about=f"{zone} {signal}", ok=may or not needed, message=words))
        return steps


def _checked(answer: Any, zone: str, signal: str) -> timedelta:
    """The distance of the points, once region, signal and unit are what was asked for."""
    meta = answer.get("meta") if isinstance(answer, dict) else None
    if not isinstance(meta, dict):
        raise IntensityError("wrong_shape", _("The answer says nothing about itself (meta)."))
    if meta.get("region") != zone or meta.get("signal_type") != signal:
        raise IntensityError(
            "wrong_zone",
            _("Asked for {zone} {signal}, the answer is about {told}: nothing taken.").format(
                zone=zone, signal=signal, told=f"{meta.get('region')} {meta.get('signal_type')}"
            ),
        )
    if meta.get("units") != UNITS:
        raise IntensityError(
            "wrong_unit",
            _("The answer is in {unit}, not in {known}: nothing taken.").format(
                unit=repr(meta.get("units")), known=UNITS
            ),
        )
    period = meta.get("data_point_period_seconds")
    if not isinstance(period, int) or period <= 0 or timedelta(hours=1) % timedelta(seconds=period):
        raise IntensityError("wrong_shape", _("The points' distance is no part of an hour."))
    return timedelta(seconds=period)


def _access(answer: Any) -> dict[str, frozenset[str]]:
    """Regions by signal, of /v3/my-access."""
    return {
        str(row.get("signal_type")): frozenset(
            str(region.get("region")) for region in documents(row, "regions")
        )
        for row in documents(answer, "signal_types")
    }


def _no_access(signal: str, zone: str, error: IntensityError | None) -> str:
    if signal == "co2_moer":
        words = _("No marginal rate (co2_moer) of {zone}: only advice needs it.")
    else:
        words = _("This account may not read the average rate (co2_aoer) of {zone}.")
    return words.format(zone=zone) + (f" ({error.message})" if error else "")


def _text(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%S}+00:00"

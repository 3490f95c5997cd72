"""Asks Prometheus-like servers for energy and power: set up, try, pull. Booking is not here."""

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

import numpy as np
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from carbon.adapters import promql
from carbon.adapters.promql import EXPORTERS, Exporter, PromqlAnswerError
from carbon.backlog import IntakeFullError
from carbon.doors import accept, ensure_sender
from carbon.models import PromqlPull, Sender
from carbon.packed import Brought, CounterColumns, PowerColumns, pack
from formulae.units import MICROSECOND_PER_S, kwh_from_millijoule
from jobs import services as jobs
from jobs.records import JobContext, PermanentJobError
from projects.access import require_organisation_role
from projects.records import Actor
from projects.sealing import open_sealed, seal
from projects.trail import note
from projects.web_client import Request, WebError, ask
from runs.records import SiteRecord
from runs.selectors import site_by_id

PULL_EVERY_S: Final = 300
COUNTER_STEP_S: Final = 300
POWER_STEP_S: Final = 60
WINDOW: Final = timedelta(hours=1)
LATE: Final = timedelta(minutes=15)  # a sample may be on its way for so long
# What is late is seen by the evaluation after it, and so is the sample before: two steps more.
OVERLAP: Final = LATE + timedelta(seconds=2 * max(COUNTER_STEP_S, POWER_STEP_S))
SETTLED: Final = timedelta(seconds=60)  # newer samples may still be on their way
FIRST_LOOK: Final = timedelta(hours=24)
DIVERGES_FRACTION: Final = 0.02
SHOWN: Final = 400


class PullError(Exception):
    """A pull that cannot be set up or made; the message is for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPull:
    """What a person sets up."""

    name: str
    url: str
    exporter: str
    matchers: str = ""
    token: str = ""
    pull_from: datetime | None = None


def save_pull(actor: Actor, site: SiteRecord, new: NewPull, *, now: datetime) -> PromqlPull:
    """Set up a pull of a site, or change the one of this name; the token is sealed.

    Raises:
        PullError: the exporter is unknown, the matchers are none, or a stored token would go to
            another address.
        PermissionDenied: the actor is no administrator.
    """
    require_organisation_role(actor, write=True)
    if new.exporter not in EXPORTERS:
        raise PullError(_("Choose one of: {names}.").format(names=", ".join(EXPORTERS)))
    if new.matchers and not promql.MATCHERS.fullmatch(new.matchers):
        raise PullError(_('Label matchers look like cluster="a",job="dcgm".'))
    of_site = PromqlPull.objects.filter(site_id=site.site_id, name=new.name)
    with transaction.atomic():
        held = of_site.select_for_update().first()
        url = new.url.rstrip("/")
        if held is not None and held.sealed and held.url != url and not new.token:
            raise PullError(_("Another address: give the credential again."))
        known_until = held.pulled_until if held is not None else None
        pull, is_new = PromqlPull.objects.update_or_create(
            organisation_id=site.organisation_id,
            site_id=site.site_id,
            name=new.name,
            defaults={
                "url": url,
                "exporter": new.exporter,
                "matchers": new.matchers,
                "enabled": True,
                "pulled_until": new.pull_from or known_until or now - FIRST_LOOK,
            },
        )
        if new.token:
            pull.sealed = seal({"token": new.token}, owner=str(pull.pk))
            pull.save(update_fields=["sealed"])
        note(
            actor,
            "power.pull.connect" if is_new else "power.pull.change",
            subject=("power pull", pull.pk),
            after={"name": new.name, "url": pull.url, "exporter": new.exporter},
        )
    return pull


def set_enabled(actor: Actor, pull: PromqlPull, *, enabled: bool) -> None:
    """Stop a pull, or let it go on from where it stopped."""
    require_organisation_role(actor, write=True)
    with transaction.atomic():
        PromqlPull.objects.filter(pk=pull.pk).update(enabled=enabled)
        note(
            actor,
            "power.pull.resume" if enabled else "power.pull.stop",
            subject=("power pull", pull.pk),
        )


def try_pull(pull: PromqlPull) -> str:
    """Ask the server now, and say in words what it has.

    Raises:
        PullError: it does not answer, refuses the token, or knows no such metric.
    """
    exporter = EXPORTERS[pull.exporter]
    query = (
        f"count({promql.device_query(exporter, exporter.energy, pull.matchers)})"
        if exporter.energy
        else f"count({promql.node_query(exporter, pull.matchers)})"
    )
    found = _asked(pull, "query", {"query": query})
    counted = int(_single(found) or 0)
    if counted:
        return _("The server has {count} lines of {exporter}.").format(
            count=counted, exporter=pull.exporter
        )
    raise PullError(
        _("The server answers, but has no metric {metric} with these labels.").format(
            metric=exporter.energy or exporter.node_power.split("{", maxsplit=1)[0]
        )
    )


def _single(found: Sequence[promql.Series]) -> float | None:
    """The one number of an answer; None where there is none, or it is no number."""
    value = float(found[0].values[0]) if found and len(found[0].values) else math.nan
    return value if math.isfinite(value) else None


def _asked(pull: PromqlPull, path: str, query: Mapping[str, str]) -> list[promql.Series]:
    """One question to the pull's server."""
    headers = {}
    if pull.sealed:
        token = open_sealed(pull.sealed, owner=str(pull.pk))["token"]
        headers["Authorization"] = f"Bearer {token}"
    request = Request(url=f"{pull.url}/api/v1/{path}", headers=headers, form=query)
    try:
        return promql.read_series(ask(request))
    except (WebError, PromqlAnswerError) as error:
        raise PullError(str(error)) from error


def _range(
    pull: PromqlPull, query: str, *, start: datetime, end: datetime, step_s: int
) -> list[promql.Series]:
    return _asked(
        pull,
        "query_range",
        {
            "query": query,
            "start": f"{start.timestamp():.3f}",
            "end": f"{end.timestamp():.3f}",
            "step": str(step_s),
        },
    )


def pull_window(pull: PromqlPull, *, start: datetime, end: datetime) -> Brought:
    """What the server knows of [start, end].

    Raises:
        PullError: it does not answer as it should.
    """
    exporter = EXPORTERS[pull.exporter]
    if exporter.node_power:
        query = promql.node_query(exporter, pull.matchers)
        found = _range(pull, query, start=start, end=end, step_s=POWER_STEP_S)
        return Brought(nodes=promql.read_nodes(exporter, found))
    energy, energy_s = _metric(pull, exporter, exporter.energy, start, end, COUNTER_STEP_S)
    power, power_s = _metric(pull, exporter, exporter.power, start, end, POWER_STEP_S)
    devices = promql.devices_of(exporter, [*energy, *power])
    counters = promql.read_counters(exporter, devices, energy, energy_s)
    watts = promql.read_power(exporter, devices, power, power_s)
    return Brought(devices=devices, counters=counters, power=_needed(watts, counters))


def _metric(  # noqa: PLR0913 - one question and its twin
    pull: PromqlPull, exporter: Exporter, metric: str, start: datetime, end: datetime, step_s: int
) -> tuple[list[promql.Series], list[promql.Series]]:
    """A metric by device, and the true times of its samples."""
    values, times = (
        _range(
            pull,
            promql.device_query(exporter, metric, pull.matchers, of_time=of_time),
            start=start,
            end=end,
            step_s=step_s,
        )
        for of_time in (False, True)
    )
    return values, times


def _needed(power: PowerColumns, counters: CounterColumns) -> PowerColumns:
    """Power of devices without a counter; of the others the newest sample, for what is now."""
    if not len(power):
        return power
    last = np.zeros(len(power), dtype=np.bool_)
    last[np.flatnonzero(np.append(np.diff(power.device) != 0, values=True))] = True
    keep = last | ~np.isin(power.device, counters.device)
    return PowerColumns(device=power.device[keep], at=power.at[keep], power_w=power.power_w[keep])


def risen_kwh(counters: CounterColumns) -> float | None:
    """What the counters rose by, last minus first, falls counted from zero; kWh."""
    if not len(counters):
        return None
    order = np.lexsort((counters.at, counters.device))
    device, value = counters.device[order], counters.counter_millijoule[order]
    step = np.diff(value)
    rises = np.where(step >= 0, step, value[1:])[device[1:] == device[:-1]]
    return kwh_from_millijoule(int(rises.sum()))


def pull_now(
    pull: PromqlPull, site: SiteRecord, *, now: datetime, context: JobContext | None = None
) -> dict[str, Any]:
    """Pull everything up to now, window by window; each is stored before the next is asked for.

    Raises:
        PullError: the server does not answer, or too much waits; what came before is stored.
    """
    sender = ensure_sender(site, Sender.Kind.PROMQL, pull.name, now=now)
    until, rows = now - SETTLED, 0
    result: dict[str, Any] = {}
    start = _on_the_step((pull.pulled_until or now - FIRST_LOOK) - OVERLAP)
    while start < until:
        end = min(start + WINDOW, until)
        brought = pull_window(pull, start=start, end=end)
        result = {**result, **_checked(pull, brought, start=start, end=end)}
        body_hash = hashlib.sha256(pack(brought)).digest()
        with transaction.atomic():
            if brought.rows:
                _accept(site, sender, brought, sha256=body_hash, now=now)
            PromqlPull.objects.filter(pk=pull.pk).update(
                pulled_until=end, last_ok_at=now, last_error=result.get("warning", "")[:SHOWN]
            )
            if context is not None:
                context.assert_still_mine()
        rows += brought.rows
        start = end
    return {"readings": rows, **result}


def _on_the_step(at: datetime) -> datetime:
    """The last instant of the common grid: what is asked again is asked for the same instants."""
    step_s = max(COUNTER_STEP_S, POWER_STEP_S)
    return at - timedelta(seconds=at.timestamp() % step_s)


def _accept(
    site: SiteRecord, sender: int, brought: Brought, *, sha256: bytes, now: datetime
) -> None:
    try:
        accept(site, sender, brought, sha256=sha256, received_at=now)
    except IntakeFullError as error:
        raise PullError(str(error)) from error


def _checked(
    pull: PromqlPull, brought: Brought, *, start: datetime, end: datetime
) -> dict[str, Any]:
    """The server's own `increase` beside last minus first: it extrapolates, the readings do not."""
    exporter = EXPORTERS[pull.exporter]
    risen = risen_kwh(brought.counters)
    if risen is None or end - start < WINDOW:
        return {}
    window_s = int((end - start).total_seconds())
    query = promql.increase_query(exporter, pull.matchers, window_s=window_s)
    found = _asked(pull, "query", {"query": query, "time": f"{end.timestamp():.3f}"})
    risen_units = _single(found)
    if risen_units is None:
        return {}
    increase = kwh_from_millijoule(round(risen_units * exporter.millijoule_per_unit))
    apart = abs(increase - risen) / max(increase, risen) if max(increase, risen) > 0 else 0.0
    result: dict[str, Any] = {
        "from": start.isoformat(),
        "to": end.isoformat(),
        "last_minus_first_kwh": risen,
        "increase_kwh": increase,
        "missing_fraction": _missing(brought.counters, start=start, end=end),
    }
    if apart > DIVERGES_FRACTION:
        result["warning"] = _(
            "From {start}: readings rose by {risen} kWh, the server's increase() says {increase} "
            "kWh: samples are missing there, or a counter began again."
        ).format(start=f"{start:%Y-%m-%d %H:%M}", risen=f"{risen:.3f}", increase=f"{increase:.3f}")
    return result


def _missing(counters: CounterColumns, *, start: datetime, end: datetime) -> float:
    """The share of the expected counters that the server does not have."""
    devices = len(np.unique(counters.device))
    expected = devices * ((end - start).total_seconds() / COUNTER_STEP_S + 1)
    inside = (counters.at >= 0) & (counters.at <= int(end.timestamp() * MICROSECOND_PER_S))
    return max(0.0, 1.0 - float(inside.sum()) / expected) if expected else 0.0


def enqueue_due() -> int:
    """Ask workers to pull every enabled pull; says how many."""
    count = 0
    for pull in PromqlPull.objects.filter(enabled=True).select_related("site"):
        enqueue_pull(pull)
        count += 1
    return count


def enqueue_pull(pull: PromqlPull) -> UUID:
    """Ask a worker to pull now; gives the job."""
    with transaction.atomic():
        return jobs.enqueue(
            organisation_id=pull.organisation_id,
            kind="carbon.pull_promql",
            scope="organisation",
            payload={"pull_id": str(pull.pk)},
            dedupe_key=str(pull.pk),
            title=_("Power from {name}").format(name=pull.name),
        ).pk


def pull_promql_job(context: JobContext) -> dict[str, Any]:
    """Job: pull up to now; an error is shown on the pull, and the next turn tries again."""
    pull = PromqlPull.objects.filter(
        pk=context.payload["pull_id"], organisation_id=context.organisation_id
    ).first()
    site = site_by_id(context.organisation_id, pull.site_id) if pull is not None else None
    if pull is None or site is None:
        raise PermanentJobError(_("The pull is gone."))
    try:
        return pull_now(pull, site, now=timezone.now(), context=context)
    except PullError as error:
        PromqlPull.objects.filter(pk=pull.pk).update(last_error=str(error)[:SHOWN])
        raise PermanentJobError(str(error)) from error

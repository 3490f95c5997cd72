"""What surrounds the demo's energy: an agent's readings, a grid by the hour, a certificate.

All of it is invented and says so. The readings are of power and use only: the hourly energy is in
the demo's files already, and outranks them.
"""

import hashlib
import math
from datetime import UTC, date, datetime, timedelta
from typing import Final

import numpy as np
from django.db import transaction

from carbon.adapters.intensity_csv import CsvReading
from carbon.boundaries import set_boundary
from carbon.doors import accept, ensure_sender
from carbon.instrument_reads import contracts_of
from carbon.instruments import NewInstrument, add_instrument
from carbon.intensity_feeds import import_intensity
from carbon.intensity_sources import SourceWish, save_source
from carbon.packed import Brought, DeviceAbout, PowerColumns, UseColumns, pack
from carbon.residual_mixes import set_residual_mix
from costwatch.demo import story
from costwatch.demo.noise import bell
from costwatch.demo.power import HOUR, reported
from projects.records import Actor
from runs.records import SiteRecord
from runs.selectors import site_by_slug

AGENT_VERSION: Final = "1.0.0 (synthetic)"
EVERY: Final = timedelta(seconds=60)
LAST_LOOK: Final = timedelta(minutes=20)
IDLE_SPAN: Final = (story.RESTART_START, story.RESTART_START + timedelta(hours=3))
HOT_SPAN: Final = (
    story.SLOW_WEEK_START + timedelta(days=1, hours=10),
    story.SLOW_WEEK_START + timedelta(days=1, hours=13),
)
THERMAL: Final = 0x20
BUSY_CLOCK_HZ: Final = 1_755_000_000.0
HOT_CLOCK_HZ: Final = 1_410_000_000.0
IDLE_CLOCK_HZ: Final = 345_000_000.0
GRID_SOURCE: Final = "Synthetic grid by the hour (demo)"
GRID_ZONE: Final = "DEMO-US-NW"
GRID_START: Final = datetime(2026, 10, 19, tzinfo=UTC)
MEAN_G_PER_KWH: Final = 190.0
SOLAR_G_PER_KWH: Final = 70.0
MARKET: Final = "USA"
NODES: Final = range(1, story.NODE_COUNT + 1)
CERTIFICATE: Final = "Synthetic wind certificate (demo)"
CERTIFICATE_KWH: Final = 200_000.0
RESIDUAL_G_PER_KWH: Final = 380.0
_STREAM: Final = 7_000_000


def deliver_grid_and_contract(actor: Actor, *, now: datetime) -> None:
    """The grid by the hour and a certificate, before any energy: hours then close with them."""
    site = demo_site(actor)
    if any(one.name == CERTIFICATE for one in contracts_of(actor.organisation_id)):
        return
    set_boundary(actor, site, ownership="cloud", market_zone=MARKET, known_at=now)
    _grid(actor, site, now=now)
    _contract(actor, now=now)


def deliver_readings(actor: Actor, *, now: datetime, seed: int) -> None:
    """What agents read in a few spans, handed in as their batches are; jobs book them."""
    site = demo_site(actor)
    spans = [(node, story.AS_OF - LAST_LOOK, story.AS_OF) for node in NODES]
    spans += [(1, *IDLE_SPAN), (1, *HOT_SPAN)]
    for node, start, end in spans:
        brought = _read(node, start, end, seed=seed)
        with transaction.atomic():
            name = story.node_name(node)
            sender = ensure_sender(site, "agent", name, version=AGENT_VERSION, now=now)
            digest = hashlib.sha256(pack(brought)).digest()
            accept(site, sender, brought, sha256=digest, received_at=now)


def demo_site(actor: Actor) -> SiteRecord:
    """The demo's site, once its configuration is applied."""
    site = site_by_slug(actor.organisation_id, story.SITE_SLUG)
    if site is None:
        raise LookupError(f"the site {story.SITE_SLUG!r} of the demo is missing")
    return site


def _read(node: int, start: datetime, end: datetime, *, seed: int) -> Brought:
    """What the agent of a node read in [start, end], once a minute."""
    moments = int((end - start) / EVERY) + 1
    there = _metered(node, start, end, seed=seed)
    gpus = len(there)
    at = np.array([int((start + EVERY * turn).timestamp()) * 10**6 for turn in range(moments)])
    stream = _STREAM + node * 10_000 + start.timetuple().tm_yday
    noise_w = 6.0 * bell(seed=seed, stream=stream, count=moments * gpus)
    mean_w, busy, clock_hz, reasons = _state(start)
    device = np.tile(np.arange(gpus, dtype=np.int32), moments)
    every_at = np.repeat(at.astype(np.int64), gpus)
    rows = moments * gpus
    return Brought(
        devices=tuple(
            DeviceAbout(
                uuid=story.device_uuid(node, gpu),
                node=story.node_name(node),
                model=story.GPU_MODEL,
                power_limit_w=700.0,
            )
            for gpu in there
        ),
        power=PowerColumns(device=device, at=every_at, power_w=mean_w + noise_w),
        use=UseColumns(
            device=device,
            at=every_at,
            measures={
                "utilisation_fraction": np.full(rows, busy),
                "temperature_c": np.round(36.0 + mean_w / 20.0 + noise_w / 6.0),
                "sm_clock_hz": np.full(rows, clock_hz),
                "power_limit_w": np.full(rows, 700.0),
                "throttle_reasons": np.full(rows, float(reasons)),
            },
        ),
        power_field="average",
    )


def _metered(node: int, start: datetime, end: datetime, *, seed: int) -> list[int]:
    """The GPUs of a node whose meters report every hour of a span: others keep their gaps."""
    first, devices = (node - 1) * story.GPUS_PER_NODE, story.NODE_COUNT * story.GPUS_PER_NODE
    hour = start.replace(minute=0)
    there = [True] * story.GPUS_PER_NODE
    while hour < end:
        of_node = reported(seed, hour, devices)[first : first + story.GPUS_PER_NODE]
        there = [one and bool(seen) for one, seen in zip(there, of_node, strict=True)]
        hour += HOUR
    return [gpu for gpu, is_there in enumerate(there) if is_there]


def _state(start: datetime) -> tuple[float, float, float, int]:
    """Mean power, utilisation, clock and throttle reasons of a span."""
    if start == IDLE_SPAN[0]:
        return 90.0, 0.0, IDLE_CLOCK_HZ, 0
    if start == HOT_SPAN[0]:
        return 505.0, 0.78, HOT_CLOCK_HZ, THERMAL
    return 650.0, 0.97, BUSY_CLOCK_HZ, 0


def _grid(actor: Actor, site: SiteRecord, *, now: datetime) -> None:
    """Invented intensity by the hour: cleaner at noon, told by a file."""
    source = save_source(
        actor,
        SourceWish(provider="csv", name=GRID_SOURCE, zones={site.site_id: GRID_ZONE}),
        now=now,
    )
    hours = int((story.AS_OF + timedelta(days=1) - GRID_START) / timedelta(hours=1))
    lines = ["zone,hour,g_per_kwh"]
    for step in range(hours):
        hour = GRID_START + timedelta(hours=step)
        noon = math.cos((hour.hour - 20) / 24 * 2 * math.pi)  # 20 h UTC is noon there
        value = MEAN_G_PER_KWH - SOLAR_G_PER_KWH * noon
        lines.append(f"{GRID_ZONE},{hour:%Y-%m-%dT%H:%M:%SZ},{value:.1f}")
    how = CsvReading(file="demo-grid.csv", now=now)
    import_intensity(actor, source, "\n".join(lines).encode(), how)


def _contract(actor: Actor, *, now: datetime) -> None:
    """A certificate for part of the year's energy, and what the rest of the market emits."""
    add_instrument(
        actor,
        NewInstrument(
            kind="certificate",
            name=CERTIFICATE,
            market_zone=MARKET,
            start=datetime(2026, 1, 1, tzinfo=UTC),
            end=datetime(2027, 1, 1, tzinfo=UTC),
            energy_kwh=CERTIFICATE_KWH,
            g_per_kwh=0.0,
            registry="DEMO-REGISTRY",
            serials="DEMO-000001 to DEMO-000200",
            retired_on=date(2026, 11, 1),
        ),
        known_at=now,
    )
    set_residual_mix(
        actor,
        market_zone=MARKET,
        year=2026,
        g_per_kwh=RESIDUAL_G_PER_KWH,
        source="Invented for the demo",
        known_at=now,
    )

"""What this installation tells Prometheus of energy, emissions, power and intake, at the scrape.

Several web processes are right: no counter lives in a process, all come from the database.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final
from uuid import UUID

from django.db.models import Count, Sum
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from carbon.backlog import backlogs, limit_bytes
from carbon.models import IntakeBody, PowerDelivery, Sender
from carbon.now_selectors import sites_now
from carbon.selectors import current_entries
from formulae.units import G_PER_KG, MILLIJOULE_PER_J
from runs.selectors import sites

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


class ProductCollector(Collector):
    """The families of one organisation at one instant."""

    def __init__(self, organisation_id: UUID, *, now: datetime) -> None:
        self.organisation_id, self.now = organisation_id, now

    def collect(self) -> Iterator[Metric]:
        """Yield every family."""
        yield from self._books()
        yield from self._now()
        yield from self._intake()

    def _books(self) -> Iterator[Metric]:
        """Sums of the books: a restatement may make them fall, as a counter's reset does."""
        energy = CounterMetricFamily(
            "costwatch_energy_joules",
            "Energy at the accelerators on the books, J",
            labels=["site", "project", "run"],
        )
        emitted = CounterMetricFamily(
            "costwatch_co2e_grams",
            "Location-based emissions on the books, g CO2e; left out where a factor is unknown",
            labels=["site", "project", "run"],
        )
        keys = ("site__slug", "project__slug", "run__slug")
        entries = current_entries().filter(organisation_id=self.organisation_id)
        rows = entries.values(*keys).annotate(
            millijoule=Sum("accelerator_energy_millijoule"),
            kgco2e=Sum("scope_2_location_kgco2e"),
            count=Count("pk"),
            known=Count("scope_2_location_kgco2e"),
        )
        for row in rows.order_by(*keys):
            labels = [row[key] or "" for key in keys]
            energy.add_metric(labels, row["millijoule"] / MILLIJOULE_PER_J)
            if row["known"] == row["count"]:
                emitted.add_metric(labels, row["kgco2e"] * G_PER_KG)
        yield energy
        yield emitted

    def _now(self) -> Iterator[Metric]:
        power = GaugeMetricFamily(
            "costwatch_power_watts",
            "Power now, of devices that report",
            labels=["site", "boundary"],
        )
        intensity = GaugeMetricFamily(
            "costwatch_grid_intensity_grams_per_kwh", "Grid intensity now", labels=["site"]
        )
        stale = GaugeMetricFamily(
            "costwatch_stale_devices",
            "Devices that reported lately and are silent",
            labels=["site"],
        )
        live = GaugeMetricFamily("costwatch_live_devices", "Devices that report", labels=["site"])
        for site in sites_now(self.organisation_id, now=self.now):
            for boundary, value in (
                ("accelerator", site.power_w),
                ("it", site.it_power_w),
                ("facility", site.facility_power_w),
            ):
                if value is not None:
                    power.add_metric([site.slug, boundary], value)
            if site.grid is not None:
                intensity.add_metric([site.slug], site.grid.value)
            stale.add_metric([site.slug], site.stale)
            live.add_metric([site.slug], site.live)
        yield from (power, intensity, stale, live)

    def _intake(self) -> Iterator[Metric]:
        waiting = GaugeMetricFamily(
            "costwatch_intake_bodies_waiting", "Stored bodies that wait to be booked"
        )
        bodies = IntakeBody.objects.filter(organisation_id=self.organisation_id)
        waiting.add_metric([], bodies.count())
        yield waiting
        yield from self._backlogs()
        senders = Sender.objects.filter(organisation_id=self.organisation_id)
        files = PowerDelivery.objects.filter(organisation_id=self.organisation_id)
        for name, about in (
            ("rows", "Readings that came in"),
            ("rejected", "Readings that were set aside"),
            ("duplicates", "Readings that were known already"),
        ):
            family = CounterMetricFamily(
                f"costwatch_intake_{name}", about, labels=["site", "sender_kind"]
            )
            rows = senders.values("site__slug", "kind").annotate(sum=Sum(name))
            for row in rows.order_by("site__slug", "kind"):
                family.add_metric([row["site__slug"], row["kind"]], row["sum"])
            by_file = files.values("site__slug", "kind").annotate(sum=Sum(name))
            for row in by_file.order_by("site__slug", "kind"):
                family.add_metric([row["site__slug"], f"delivery_{row['kind']}"], row["sum"])
            yield family
        refused = GaugeMetricFamily(
            "costwatch_senders_refused", "Senders that are refused now", labels=["site"]
        )
        counted = senders.filter(refused_since__isnull=False).values("site__slug")
        for one in counted.annotate(count=Count("pk")).order_by("site__slug"):
            refused.add_metric([one["site__slug"]], one["count"])
        yield refused

    def _backlogs(self) -> Iterator[Metric]:
        size = GaugeMetricFamily(
            "costwatch_intake_bytes_waiting", "Bytes that wait to be booked", labels=["site"]
        )
        slugs = {one.site_id: one.slug for one in sites(self.organisation_id)}
        found = {one.site_id: one.size_bytes for one in backlogs(self.organisation_id)}
        for site_id, slug in slugs.items():
            size.add_metric([slug], found.get(site_id, 0))
        limit = GaugeMetricFamily(
            "costwatch_intake_bytes_limit", "Bytes of one site from which its doors answer 503"
        )
        limit.add_metric([], limit_bytes())
        yield from (size, limit)


def product_metrics(organisation_id: UUID, *, now: datetime) -> bytes:
    """The text that a scrape gets."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(ProductCollector(organisation_id, now=now))
    return bytes(generate_latest(registry))

"""Tables of energy by device and hour, the hours to close, and what nodes and sites measure."""

import uuid

from django.db import models
from django.db.models import Q

from projects.models import Organisation


class OpenHours(models.Model):
    """Hours of a site that new readings have touched and that are to be closed."""

    organisation_id = models.UUIDField()
    site = models.ForeignKey("runs.Site", on_delete=models.CASCADE, related_name="+")
    start = models.DateTimeField()
    end = models.DateTimeField()
    device_ids = models.JSONField()
    marked_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.site_id} {self.start:%Y-%m-%dT%H} to {self.end:%Y-%m-%dT%H}"


class EnergyHour(models.Model):
    """Energy of one device in one UTC hour; recomputing adds a version."""

    pk = models.CompositePrimaryKey("device_id", "hour", "version")
    organisation_id = models.UUIDField()
    site_id = models.UUIDField()
    device = models.ForeignKey(
        "runs.Device",
        on_delete=models.PROTECT,
        related_name="+",
        db_constraint=False,
        db_index=False,
    )
    hour = models.DateTimeField()
    version = models.SmallIntegerField()
    measured_millijoule = models.BigIntegerField()
    spread_millijoule = models.BigIntegerField()
    estimated_millijoule = models.BigIntegerField()
    covered_microsecond = models.BigIntegerField()
    integrated_millijoule = models.BigIntegerField(db_default=0)  # measured, by power
    estimated_microsecond = models.BigIntegerField(db_default=0)
    estimate_method = models.CharField(max_length=24, blank=True, db_default="")
    # Of measured: since a counter began again, at an unknown instant; a lower bound, not covered.
    reset_millijoule = models.BigIntegerField(db_default=0)
    # How far the counter is off the integrated power where both know, over the latter.
    divergence_fraction = models.FloatField(null=True)
    known_at = models.DateTimeField()
    superseded_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(
                fields=["site_id", "hour"],
                condition=Q(superseded_at__isnull=True),
                name="current_hours_of_site",
            )
        ]

    def __str__(self) -> str:
        return f"{self.device_id} {self.hour:%Y-%m-%dT%H} v{self.version}"


class SiteMeterReading(models.Model):
    """What a meter of the site counted over a period: facility, IT, or water."""

    class Meter(models.TextChoices):
        FACILITY = "facility_kwh"
        IT = "it_kwh"
        WATER = "water_l"

    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="+")
    site = models.ForeignKey("runs.Site", on_delete=models.PROTECT, related_name="+")
    meter = models.CharField(max_length=16, choices=Meter.choices)
    start = models.DateTimeField()
    end = models.DateTimeField()
    value = models.FloatField()
    source = models.CharField(max_length=200, blank=True)
    known_at = models.DateTimeField()
    superseded_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["meter", "start"]
        constraints = [
            models.UniqueConstraint(
                fields=["site", "meter", "start", "end"],
                condition=Q(superseded_at__isnull=True),
                name="one_meter_reading_of_a_period",
            )
        ]

    def __str__(self) -> str:
        return f"{self.meter} {self.start:%Y-%m-%dT%H}"


class HourlyFactor(models.Model):
    """A factor of a site over a period: PUE, WUE, or the host factor that its nodes measured."""

    class Kind(models.TextChoices):
        HOST_FACTOR = "host_factor"
        PUE = "pue"
        WUE = "wue_l_per_kwh"

    class Level(models.TextChoices):
        HOUR = "hour"
        MONTH = "month"
        YEAR = "year"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="+")
    site = models.ForeignKey("runs.Site", on_delete=models.PROTECT, related_name="+")
    kind = models.CharField(max_length=16, choices=Kind.choices)
    level = models.CharField(max_length=8, choices=Level.choices)
    start = models.DateTimeField()
    end = models.DateTimeField()
    value = models.FloatField()
    numerator = models.FloatField(null=True)  # facility kWh over IT kWh, IT over accelerator kWh
    denominator = models.FloatField(null=True)
    tier = models.CharField(max_length=10)  # measured, published, estimated
    source = models.CharField(max_length=200, blank=True)
    known_at = models.DateTimeField()
    superseded_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["kind", "start"]
        constraints = [
            models.UniqueConstraint(
                fields=["site", "kind", "level", "start"],
                condition=Q(superseded_at__isnull=True),
                name="one_factor_of_a_period",
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.value:g} {self.start:%Y-%m-%dT%H}"


class DeviceUseHour(models.Model):
    """How a device spent the energy of an hour, where power and utilisation were read together.

    Shares of what was seen, not of the hour; recomputed with the hour, disposable.
    """

    pk = models.CompositePrimaryKey("device_id", "hour")
    organisation_id = models.UUIDField()
    site_id = models.UUIDField()
    device = models.ForeignKey(
        "runs.Device",
        on_delete=models.CASCADE,
        related_name="+",
        db_constraint=False,
        db_index=False,
    )
    hour = models.DateTimeField()
    sender_id = models.IntegerField()
    seen_s = models.FloatField()
    seen_j = models.FloatField()
    idle_s = models.FloatField()
    idle_j = models.FloatField()
    throttled_s = models.FloatField()
    throttled_j = models.FloatField()
    capped_s = models.FloatField()
    capped_j = models.FloatField()
    busy_fraction = models.FloatField(null=True)  # mean utilisation
    sm_clock_hz = models.FloatField(null=True)  # mean
    power_limit_w = models.FloatField(null=True)  # the lowest of the hour

    class Meta:
        indexes = [models.Index(fields=["site_id", "hour"], name="use_hours_of_site")]

    def __str__(self) -> str:
        return f"{self.device_id} {self.hour:%Y-%m-%dT%H}"

"""Tables of power, energy and emissions: intake, hours by device, dated factors, the entries."""

import uuid

from django.db import models
from django.db.models import Q

from projects.models import Organisation, Project


class PowerDelivery(models.Model):
    """What one file brought; of what came by API, what one site sent on one day."""

    class Kind(models.TextChoices):
        FILE = "file"
        API = "api"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="+")
    site = models.ForeignKey("runs.Site", on_delete=models.PROTECT, related_name="+")
    kind = models.CharField(max_length=8, choices=Kind.choices)
    name = models.CharField(max_length=255)  # the file's name, or the day of the API
    sha256 = models.CharField(max_length=64, blank=True)
    job_id = models.UUIDField(null=True, blank=True)
    rows = models.BigIntegerField(default=0)
    rejected = models.BigIntegerField(default=0)
    duplicates = models.BigIntegerField(default=0)
    reasons = models.JSONField(default=dict)
    received_at = models.DateTimeField()
    received_by = models.CharField(max_length=200, blank=True)

    class Meta:
        ordering = ["-received_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["site", "kind", "name", "sha256"], name="delivery_counted_once"
            )
        ]

    def __str__(self) -> str:
        return self.name


class PowerSample(models.Model):
    """A power reading of one device at one instant; the first one received stays."""

    pk = models.CompositePrimaryKey("device_id", "at")
    organisation_id = models.UUIDField()
    # Without a constraint in the database: intake creates the device in the same transaction.
    device = models.ForeignKey(
        "runs.Device",
        on_delete=models.PROTECT,
        related_name="+",
        db_constraint=False,
        db_index=False,
    )
    at = models.DateTimeField()
    power_w = models.FloatField()
    received_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.device_id} {self.at:%Y-%m-%dT%H:%M:%S}"


class MeteredInterval(models.Model):
    """Metered energy of one device in [start, end); a device's intervals do not overlap."""

    pk = models.CompositePrimaryKey("device_id", "start", "end")
    organisation_id = models.UUIDField()
    device = models.ForeignKey(
        "runs.Device",
        on_delete=models.PROTECT,
        related_name="+",
        db_constraint=False,
        db_index=False,
    )
    start = models.DateTimeField()
    end = models.DateTimeField()
    energy_millijoule = models.BigIntegerField()
    received_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.device_id} {self.start:%Y-%m-%dT%H:%M:%S}"


class QuarantinedPower(models.Model):
    """A reading that cannot be true, kept aside with the reason."""

    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="+")
    site = models.ForeignKey("runs.Site", on_delete=models.PROTECT, related_name="+")
    device_uuid = models.CharField(max_length=200)
    start = models.DateTimeField(null=True)
    end = models.DateTimeField(null=True)
    reading = models.CharField(max_length=80)
    reason = models.CharField(max_length=40)
    received_at = models.DateTimeField()

    class Meta:
        ordering = ["-received_at", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["site", "device_uuid", "start", "end", "reading", "reason"],
                name="quarantined_once",
                nulls_distinct=False,
            )
        ]

    def __str__(self) -> str:
        return f"{self.device_uuid}: {self.reason}"


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


class GridIntensity(models.Model):
    """A yearly grid factor, as shipped; rows are added, never changed."""

    factor_id = models.CharField(max_length=120, unique=True)
    zone_type = models.CharField(max_length=20)
    zone = models.CharField(max_length=80)
    zone_name = models.CharField(max_length=120)
    year = models.PositiveSmallIntegerField()
    value_g_per_kwh = models.FloatField()
    gas_scope = models.CharField(max_length=20)
    method = models.CharField(max_length=80)
    source = models.CharField(max_length=200)
    reference = models.CharField(max_length=200, blank=True)
    licence = models.CharField(max_length=80)
    version = models.CharField(max_length=40)

    class Meta:
        indexes = [models.Index(fields=["zone_type", "zone", "year"], name="grid_by_zone")]

    def __str__(self) -> str:
        return self.factor_id


class SiteFactor(models.Model):
    """A factor of a site from a day on. A change supersedes; nothing is overwritten."""

    class Kind(models.TextChoices):
        HOST_FACTOR = "host_factor"
        PUE = "pue"
        GRID = "grid_g_per_kwh"
        MAX_GAP = "max_gap_s"

    class Tier(models.TextChoices):
        MEASURED = "measured"
        PUBLISHED = "published"
        ESTIMATED = "estimated"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="+")
    site = models.ForeignKey("runs.Site", on_delete=models.PROTECT, related_name="+")
    kind = models.CharField(max_length=20, choices=Kind.choices)
    value = models.FloatField()
    valid_from = models.DateField()
    tier = models.CharField(max_length=10, choices=Tier.choices, default=Tier.ESTIMATED)
    source = models.CharField(max_length=200, blank=True)
    known_at = models.DateTimeField()
    superseded_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["kind", "valid_from"]
        constraints = [
            models.UniqueConstraint(
                fields=["site", "kind", "valid_from"],
                condition=Q(superseded_at__isnull=True),
                name="one_site_factor_from_a_day",
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.value:g} from {self.valid_from}"


class FactorSet(models.Model):
    """The factors that one entry was computed with, as they were then."""

    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="+")
    digest = models.CharField(max_length=64)
    host_factor = models.FloatField(null=True)
    pue = models.FloatField()
    grid_g_per_kwh = models.FloatField(null=True)
    factors = models.JSONField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["organisation", "digest"], name="factor_set_once")
        ]

    def __str__(self) -> str:
        return self.digest[:12]


class EmissionEntry(models.Model):
    """Energy and emissions of one owner in one hour at one site; corrections reverse."""

    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="+")
    site = models.ForeignKey("runs.Site", on_delete=models.PROTECT, related_name="+")
    project = models.ForeignKey(Project, on_delete=models.PROTECT, null=True, related_name="+")
    run = models.ForeignKey("runs.Run", on_delete=models.PROTECT, null=True, related_name="+")
    hour = models.DateTimeField()
    accelerator_energy_millijoule = models.BigIntegerField()
    measured_millijoule = models.BigIntegerField()
    spread_millijoule = models.BigIntegerField()
    estimated_millijoule = models.BigIntegerField()
    covered_microsecond = models.BigIntegerField()
    expected_microsecond = models.BigIntegerField()
    it_energy_kwh = models.FloatField(null=True)
    facility_energy_kwh = models.FloatField(null=True)
    scope_2_location_kgco2e = models.FloatField(null=True)
    scope_2_market_kgco2e = models.FloatField(null=True)
    market_basis = models.CharField(max_length=40, blank=True)
    factor_set = models.ForeignKey(FactorSet, on_delete=models.PROTECT, related_name="+")
    posted_at = models.DateTimeField()
    reverses = models.OneToOneField(
        "self", on_delete=models.PROTECT, null=True, related_name="reversal"
    )

    class Meta:
        indexes = [
            models.Index(fields=["organisation", "project", "hour"], name="entries_of_project"),
            models.Index(fields=["site", "hour"], name="entries_of_site"),
        ]

    def __str__(self) -> str:
        return f"{self.site_id} {self.hour:%Y-%m-%dT%H}"

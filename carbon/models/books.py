"""Tables of the books: emission entries with their factors, locks, restatements, instruments."""

import uuid

from django.db import models
from django.db.models import Q

from projects.models import Organisation, Project


class FactorSet(models.Model):
    """The factors that one entry was computed with, as they were then."""

    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="+")
    digest = models.CharField(max_length=64)
    host_factor = models.FloatField(null=True)
    pue = models.FloatField()
    grid_g_per_kwh = models.FloatField(null=True)
    upstream_g_per_kwh = models.FloatField(null=True)  # scope 3 category 3, where known apart
    residual_g_per_kwh = models.FloatField(null=True)
    wue_l_per_kwh = models.FloatField(null=True)
    source_l_per_kwh = models.FloatField(null=True)
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
    market_zone = models.CharField(max_length=80, blank=True, default="")
    scope_category = models.CharField(max_length=24, blank=True, default="")
    upstream_kgco2e = models.FloatField(null=True)  # fuel and losses upstream, scope 3 category 3
    embodied_kgco2e = models.FloatField(null=True)  # project view: its share of the hardware
    water_on_site_l = models.FloatField(null=True)
    water_source_l = models.FloatField(null=True)
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


class SiteBoundary(models.Model):
    """Who owns and controls the hardware of a site from a day on: it decides the scopes."""

    class Ownership(models.TextChoices):
        OWN = "own"  # own hardware, own power: scope 2, hardware scope 3 category 2
        COLOCATION = "colocation"  # own hardware in a rented hall
        LEASED = "leased"  # leased asset without control: scope 3 category 8
        CLOUD = "cloud"  # rented: all of it scope 3 category 1

    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="+")
    site = models.ForeignKey("runs.Site", on_delete=models.PROTECT, related_name="+")
    ownership = models.CharField(max_length=12, choices=Ownership.choices)
    market_zone = models.CharField(max_length=80, blank=True)  # empty: the site's country
    valid_from = models.DateField()
    known_at = models.DateTimeField()
    superseded_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["valid_from"]
        constraints = [
            models.UniqueConstraint(
                fields=["site", "valid_from"],
                condition=Q(superseded_at__isnull=True),
                name="one_boundary_from_a_day",
            )
        ]

    def __str__(self) -> str:
        return f"{self.site_id} {self.ownership}"


class Instrument(models.Model):
    """A contract or certificate that conveys an emission rate to energy of a market and period."""

    class Kind(models.TextChoices):
        CERTIFICATE = "certificate"
        PPA = "ppa"
        SUPPLIER = "supplier_rate"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="+")
    kind = models.CharField(max_length=16, choices=Kind.choices)
    name = models.CharField(max_length=200)
    market_zone = models.CharField(max_length=80)
    start = models.DateTimeField()
    end = models.DateTimeField()
    energy_kwh = models.FloatField(null=True)  # None: all energy of the market (a supplier's rate)
    g_per_kwh = models.FloatField()
    registry = models.CharField(max_length=120, blank=True)
    serials = models.TextField(blank=True)
    retired_on = models.DateField(null=True)
    evidence_name = models.CharField(max_length=255, blank=True)
    evidence_sha256 = models.CharField(max_length=64, blank=True)
    known_at = models.DateTimeField()
    superseded_at = models.DateTimeField(null=True)
    entered_by = models.CharField(max_length=200, blank=True)

    class Meta:
        ordering = ["start", "name"]

    def __str__(self) -> str:
        return self.name


class InstrumentHour(models.Model):
    """What an instrument delivers in one hour, where it is known by the hour."""

    instrument = models.ForeignKey(Instrument, on_delete=models.CASCADE, related_name="hours")
    hour = models.DateTimeField()
    energy_kwh = models.FloatField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["instrument", "hour"], name="instrument_hour_once")
        ]

    def __str__(self) -> str:
        return f"{self.hour:%Y-%m-%dT%H} {self.energy_kwh:g}"


class ResidualMix(models.Model):
    """What is left of a market's mix once tracked attributes are gone, for a year."""

    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="+")
    market_zone = models.CharField(max_length=80)
    year = models.PositiveSmallIntegerField()
    g_per_kwh = models.FloatField()
    source = models.CharField(max_length=200)
    known_at = models.DateTimeField()
    superseded_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["market_zone", "-year"]
        constraints = [
            models.UniqueConstraint(
                fields=["organisation", "market_zone", "year"],
                condition=Q(superseded_at__isnull=True),
                name="one_residual_mix_of_a_year",
            )
        ]

    def __str__(self) -> str:
        return f"{self.market_zone} {self.year}"


class EmbodiedAsset(models.Model):
    """Hardware of a site whose making emitted: counted whole on purchase, or by the hour of use."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="+")
    site = models.ForeignKey("runs.Site", on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=200)
    devices = models.PositiveIntegerField()  # accelerators that the hardware serves
    kgco2e = models.FloatField()  # of all of it
    kgco2e_low = models.FloatField(null=True)
    kgco2e_high = models.FloatField(null=True)
    purchased_on = models.DateField()
    lifetime_h = models.FloatField()
    source = models.CharField(max_length=400)
    known_at = models.DateTimeField()
    superseded_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["purchased_on", "name"]

    def __str__(self) -> str:
        return self.name


class PeriodLock(models.Model):
    """A period of the books that was prepared, signed off and locked; reopening is a new fact."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="+")
    start = models.DateTimeField()
    end = models.DateTimeField()
    totals = models.JSONField()
    digest = models.CharField(max_length=64)
    prepared_by = models.CharField(max_length=200)
    prepared_at = models.DateTimeField()
    approved_by = models.CharField(max_length=200, blank=True)
    approved_at = models.DateTimeField(null=True)
    reopened_by = models.CharField(max_length=200, blank=True)
    reopened_at = models.DateTimeField(null=True)
    reason = models.CharField(max_length=400, blank=True)

    class Meta:
        ordering = ["-start"]

    def __str__(self) -> str:
        return f"{self.start:%Y-%m-%d} to {self.end:%Y-%m-%d}"


class Restatement(models.Model):
    """Hours whose posted entries changed: from which sums to which, and why; held while locked."""

    class Cause(models.TextChoices):
        READINGS = "readings"
        FACTORS = "factors"
        ASSIGNMENT = "assignment"

    class State(models.TextChoices):
        POSTED = "posted"
        HELD = "held"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="+")
    site = models.ForeignKey("runs.Site", on_delete=models.PROTECT, related_name="+")
    start = models.DateTimeField()
    end = models.DateTimeField()
    cause = models.CharField(max_length=12, choices=Cause.choices)
    detail = models.CharField(max_length=400, blank=True)
    before = models.JSONField()
    after = models.JSONField()
    entries = models.IntegerField()
    state = models.CharField(max_length=8, choices=State.choices)
    noted_at = models.DateTimeField()
    decided_by = models.CharField(max_length=200, blank=True)
    decided_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-noted_at"]
        indexes = [models.Index(fields=["organisation", "start"], name="restatements_by_start")]

    def __str__(self) -> str:
        return f"{self.site_id} {self.start:%Y-%m-%dT%H} {self.cause}"

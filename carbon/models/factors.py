"""Tables of factors: shipped grid rows, a site's own dated ones, hourly ones, approvals."""

import uuid

from django.db import models
from django.db.models import Q

from projects.models import Organisation


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
        WUE = "wue_l_per_kwh"
        SOURCE_WATER = "source_l_per_kwh"
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


class IntensitySource(models.Model):
    """A provider of hourly grid intensity that the organisation asks."""

    class Provider(models.TextChoices):
        ELECTRICITY_MAPS = "electricitymaps"
        WATTTIME = "watttime"
        UK = "uk_carbon_intensity"
        CSV = "csv"

    class State(models.TextChoices):
        NEW = "new"
        OK = "ok"
        BROKEN = "broken"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="+")
    provider = models.CharField(max_length=24, choices=Provider.choices)
    name = models.CharField(max_length=120)
    base_url = models.URLField(max_length=400, blank=True)  # empty: the provider's own
    basis = models.CharField(max_length=12, default="direct")  # direct or lifecycle
    sealed = models.TextField(blank=True)
    position = models.PositiveSmallIntegerField(default=1)  # the first that knows the hour wins
    enabled = models.BooleanField(default=True)
    state = models.CharField(max_length=8, choices=State.choices, default=State.NEW)
    last_ok_at = models.DateTimeField(null=True)
    last_error = models.CharField(max_length=400, blank=True)
    last_error_at = models.DateTimeField(null=True)
    not_before = models.DateTimeField(null=True)  # asked to wait until then

    class Meta:
        ordering = ["position", "name"]
        constraints = [
            models.UniqueConstraint(fields=["organisation", "name"], name="intensity_source_once")
        ]

    def __str__(self) -> str:
        return self.name


class SiteZone(models.Model):
    """Which of a source's zones a site stands in."""

    organisation_id = models.UUIDField()
    site = models.ForeignKey("runs.Site", on_delete=models.CASCADE, related_name="+")
    source = models.ForeignKey(IntensitySource, on_delete=models.CASCADE, related_name="zones")
    zone = models.CharField(max_length=80)
    backfilled_from = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["site", "source"], name="one_zone_of_a_source")
        ]

    def __str__(self) -> str:
        return self.zone


class HourlyIntensity(models.Model):
    """Grid intensity of a zone in one hour, as one source told it; a revision supersedes."""

    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="+")
    source = models.ForeignKey(IntensitySource, on_delete=models.PROTECT, related_name="hours")
    zone = models.CharField(max_length=80)
    hour = models.DateTimeField()
    basis = models.CharField(max_length=12)  # direct, lifecycle
    signal = models.CharField(max_length=10, default="average")  # marginal: for advice only
    value_g_per_kwh = models.FloatField()
    is_estimated = models.BooleanField(default=False)
    method = models.CharField(max_length=80, blank=True)
    told_at = models.DateTimeField(null=True)  # the provider's own time of this value
    known_at = models.DateTimeField()
    superseded_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["source", "zone", "hour", "basis", "signal"],
                condition=Q(superseded_at__isnull=True),
                name="one_intensity_of_an_hour",
            )
        ]

    def __str__(self) -> str:
        return f"{self.zone} {self.hour:%Y-%m-%dT%H} {self.value_g_per_kwh:g}"


class FactorApproval(models.Model):
    """Somebody approved a factor for the books; rows are added, never changed."""

    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="+")
    factor_id = models.CharField(max_length=160)
    version = models.CharField(max_length=40, blank=True)
    value = models.FloatField()
    approved_by = models.CharField(max_length=200)
    approved_at = models.DateTimeField()
    note = models.CharField(max_length=400, blank=True)

    class Meta:
        ordering = ["-approved_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["organisation", "factor_id", "version", "value"], name="approved_once"
            )
        ]

    def __str__(self) -> str:
        return self.factor_id

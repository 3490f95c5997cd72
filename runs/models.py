"""Tables of what ran where: sites, devices, runs, assignments, progress, own catalogue rows."""

import uuid

from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import BigIntegerRangeField, DateTimeRangeField, RangeOperators
from django.db import models
from django.db.models import F, Func, Q, Value
from django.db.models.functions import Lower

from projects.models import Organisation, Project


class CatalogueEntry(models.Model):
    """An organisation's own accelerator; it overrides a shipped row of the same key."""

    organisation = models.ForeignKey(Organisation, on_delete=models.CASCADE, related_name="+")
    key = models.SlugField(max_length=80)
    document = models.JSONField()
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["key"]
        constraints = [
            models.UniqueConstraint(
                fields=["organisation", "key"], name="catalogue_key_once_per_organisation"
            )
        ]

    def __str__(self) -> str:
        return self.key


class InstanceTypeEntry(models.Model):
    """An organisation's own instance type; it overrides a shipped one of the same name."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    organisation = models.ForeignKey(Organisation, on_delete=models.CASCADE, related_name="+")
    provider = models.CharField(max_length=40)
    name = models.CharField(max_length=120)
    document = models.JSONField()
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["provider", "name"]
        constraints = [
            models.UniqueConstraint(
                "organisation",
                "provider",
                Lower("name"),
                name="instance_type_once_per_organisation",
            )
        ]

    def __str__(self) -> str:
        return f"{self.provider} {self.name}"


class Site(models.Model):
    """A place with accelerators: a provider's region, a colocation, an own hall."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="+")
    slug = models.SlugField(max_length=80)
    name = models.CharField(max_length=200)
    provider = models.CharField(max_length=40, blank=True)
    region = models.CharField(max_length=80, blank=True)
    country = models.CharField(max_length=3, blank=True)  # ISO 3166-1 alpha-3
    state = models.CharField(max_length=8, blank=True)  # US states, as US-VA
    time_zone = models.CharField(max_length=64, default="UTC")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["organisation", "slug"], name="site_slug_once_per_organisation"
            )
        ]

    def __str__(self) -> str:
        return self.name


class Node(models.Model):
    """A host with accelerators."""

    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="+")
    site = models.ForeignKey(Site, on_delete=models.PROTECT, related_name="nodes")
    name = models.CharField(max_length=200)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["site", "name"], name="node_name_once_per_site")
        ]

    def __str__(self) -> str:
        return self.name


class Device(models.Model):
    """One accelerator, known by the UUID that its driver reports."""

    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="+")
    site = models.ForeignKey(Site, on_delete=models.PROTECT, related_name="devices")
    node = models.ForeignKey(
        Node, on_delete=models.PROTECT, null=True, blank=True, related_name="devices"
    )
    uuid = models.CharField(max_length=120)
    model = models.CharField(max_length=120, blank=True)
    accelerator_key = models.CharField(max_length=80, blank=True)
    max_power_w = models.FloatField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["uuid"]
        constraints = [
            models.UniqueConstraint(
                fields=["organisation", "uuid"], name="device_uuid_once_per_organisation"
            ),
            models.CheckConstraint(
                condition=Q(max_power_w__isnull=True) | Q(max_power_w__gt=0),
                name="device_max_power_above_zero",
            ),
        ]

    def __str__(self) -> str:
        return self.uuid


class Run(models.Model):
    """One training run of a project."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="+")
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="runs")
    slug = models.SlugField(max_length=80)
    name = models.CharField(max_length=200)
    accelerator_key = models.CharField(max_length=80, blank=True)
    accelerator_count = models.PositiveIntegerField(default=0)
    precision = models.CharField(max_length=8, blank=True)
    start = models.DateTimeField(null=True, blank=True)
    end = models.DateTimeField(null=True, blank=True)
    parameters_active = models.FloatField(null=True, blank=True)
    flop_per_token = models.FloatField(null=True, blank=True)
    tokens_planned = models.BigIntegerField(null=True, blank=True)
    tokens_per_step = models.BigIntegerField(null=True, blank=True)
    plan_line_key = models.CharField(max_length=80, blank=True)
    git_commit = models.CharField(max_length=64, blank=True)
    external_url = models.CharField(max_length=500, blank=True)

    class Meta:
        ordering = ["start", "slug"]
        constraints = [
            models.UniqueConstraint(fields=["project", "slug"], name="run_slug_once_per_project"),
            models.CheckConstraint(
                condition=Q(end__isnull=True) | Q(start__isnull=True) | Q(end__gt=F("start")),
                name="run_ends_after_its_start",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Assignment(models.Model):
    """A device works for a project in [start, end). One device works for one project at a time."""

    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="+")
    device = models.ForeignKey(Device, on_delete=models.CASCADE, related_name="assignments")
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="assignments")
    run = models.ForeignKey(
        Run, on_delete=models.SET_NULL, null=True, blank=True, related_name="assignments"
    )
    start = models.DateTimeField()
    end = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["start"]
        indexes = [models.Index(fields=["organisation", "start"], name="assignment_by_start")]
        constraints = [
            models.CheckConstraint(
                condition=Q(end__isnull=True) | Q(end__gt=F("start")),
                name="assignment_ends_after_its_start",
            ),
            # The device as a one-point range needs no extension: plain PostgreSQL can index it.
            ExclusionConstraint(
                name="one_assignment_per_device_at_a_time",
                expressions=[
                    (
                        Func(
                            F("device"),
                            F("device"),
                            Value("[]"),
                            function="int8range",
                            output_field=BigIntegerRangeField(),
                        ),
                        RangeOperators.OVERLAPS,
                    ),
                    (
                        Func(
                            F("start"),
                            F("end"),
                            function="tstzrange",
                            output_field=DateTimeRangeField(),
                        ),
                        RangeOperators.OVERLAPS,
                    ),
                ],
            ),
        ]

    def __str__(self) -> str:
        return f"{self.device_id} for {self.project_id} from {self.start:%Y-%m-%d}"


class ProgressSource(models.Model):
    """Who reports a run's progress: an agent's tail, a helper in the training code, a file."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="sources")
    name = models.CharField(max_length=120)
    created_at = models.DateTimeField(auto_now_add=True)
    heard_at = models.DateTimeField()
    waiting = models.JSONField(default=dict)
    """Measures by instant, of a source that tells them apart, until their step is told."""

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["run", "name"], name="progress_source_once_per_run")
        ]

    def __str__(self) -> str:
        return self.name


class StepReading(models.Model):
    """What a source said after a step; what is told once is never changed.

    `known_at` is when it came here. Measures that are told apart fill what is not known yet.
    """

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="+", db_index=False)
    source = models.ForeignKey(
        ProgressSource, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    at = models.DateTimeField()
    known_at = models.DateTimeField()
    step = models.BigIntegerField()
    tokens_total = models.BigIntegerField(null=True)
    step_time_s = models.FloatField(null=True)
    world_size = models.PositiveIntegerField(null=True)
    loss = models.FloatField(null=True)
    grad_norm = models.FloatField(null=True)
    learning_rate = models.FloatField(null=True)
    data_s = models.FloatField(null=True)
    communication_s = models.FloatField(null=True)
    checkpoint_s = models.FloatField(null=True)
    reported_mfu_fraction = models.FloatField(null=True)
    data_shard = models.CharField(max_length=200, blank=True)

    class Meta:
        ordering = ["at", "step"]
        constraints = [
            models.UniqueConstraint(
                fields=["run", "at", "step", "source"], name="step_reading_once_per_source"
            )
        ]

    def __str__(self) -> str:
        return f"step {self.step} at {self.at:%Y-%m-%d %H:%M:%S}"


class RunHappening(models.Model):
    """An event of a run; never changed. Several sources may tell it: it is kept once."""

    run = models.ForeignKey(
        Run, on_delete=models.CASCADE, related_name="happenings", db_index=False
    )
    source = models.ForeignKey(
        ProgressSource, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    at = models.DateTimeField()
    known_at = models.DateTimeField()
    kind = models.CharField(max_length=12)
    step = models.BigIntegerField(null=True)
    to_step = models.BigIntegerField(null=True)
    detail = models.CharField(max_length=500, blank=True)
    duration_s = models.FloatField(null=True)

    class Meta:
        ordering = ["at", "kind"]
        constraints = [
            models.UniqueConstraint(
                fields=["run", "at", "kind", "step"],
                nulls_distinct=False,
                name="run_happening_once",
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} at {self.at:%Y-%m-%d %H:%M:%S}"


class RunDay(models.Model):
    """The sums of a run's UTC day, for speed only: a stale one is read from its readings."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="days")
    day = models.DateField()
    is_stale = models.BooleanField(default=True)
    known_at = models.DateTimeField()
    """When the newest of what it sums came here."""
    sums = models.JSONField(default=dict)
    claims = models.JSONField(default=dict)
    """How its device-time was spent; apart, because it is long and seldom asked for."""

    class Meta:
        ordering = ["day"]
        constraints = [models.UniqueConstraint(fields=["run", "day"], name="run_day_once")]

    def __str__(self) -> str:
        return f"{self.run_id} on {self.day}"

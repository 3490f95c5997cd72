"""Tables of intent: frozen estimates, plans, their versions and lines, rate cards."""

import uuid

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _


class Estimate(models.Model):
    """A kickoff estimate: what was asked and what was answered. Frozen; a new view is a new row."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    organisation = models.ForeignKey(
        "projects.Organisation", on_delete=models.PROTECT, related_name="+"
    )
    project = models.ForeignKey(
        "projects.Project", on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    name = models.CharField(max_length=200)
    spec = models.JSONField(help_text="The question, as asked (planning.spec.EstimateRequest).")
    result = models.JSONField(help_text="The answer; money as strings.")
    created_by = models.CharField(max_length=200)
    created_by_user_id = models.IntegerField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return self.name


class Plan(models.Model):
    """The plan of one project: a chain of versions, one of them the baseline."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    organisation = models.ForeignKey(
        "projects.Organisation", on_delete=models.PROTECT, related_name="+"
    )
    project = models.OneToOneField("projects.Project", on_delete=models.PROTECT, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return f"plan of {self.project_id}"


class PlanVersion(models.Model):
    """One version: a draft may change, an approved one never does (a database trigger says so)."""

    class State(models.TextChoices):
        DRAFT = "draft", _("Draft")
        APPROVED = "approved", _("Approved")

    organisation = models.ForeignKey(
        "projects.Organisation", on_delete=models.PROTECT, related_name="+"
    )
    plan = models.ForeignKey(Plan, on_delete=models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()
    estimate = models.ForeignKey(Estimate, on_delete=models.PROTECT, related_name="+")
    state = models.CharField(max_length=10, choices=State.choices, default=State.DRAFT)
    level = models.CharField(
        max_length=4, default="p50", help_text="The percentile of the estimate that is planned."
    )
    currency = models.CharField(max_length=3)
    main_run_cost = models.DecimalField(max_digits=38, decimal_places=18)
    main_run_facility_energy_kwh = models.FloatField(null=True, blank=True)
    main_run_kgco2e = models.FloatField(null=True, blank=True)
    main_run_starts_on = models.DateField()
    main_run_ends_on = models.DateField(help_text="Exclusive.")
    created_by = models.CharField(max_length=200)
    created_at = models.DateTimeField(auto_now_add=True)
    approved_by = models.CharField(max_length=200, blank=True)
    approved_at = models.DateTimeField(null=True, blank=True)
    reason = models.TextField(blank=True, help_text="Why this baseline replaced the one before.")

    class Meta:
        ordering = ["-number"]
        constraints = [
            models.UniqueConstraint(
                fields=["plan", "number"], name="plan_version_number_once_per_plan"
            ),
            models.CheckConstraint(
                condition=models.Q(main_run_ends_on__gt=models.F("main_run_starts_on")),
                name="plan_main_run_ends_after_it_starts",
            ),
            models.CheckConstraint(
                condition=models.Q(main_run_cost__gt=0), name="plan_main_run_costs_something"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.plan_id} v{self.number} {self.state}"


class PlanLine(models.Model):
    """One line of a plan version: an amount, its share of its base, and when it is spent."""

    class Base(models.TextChoices):
        MAIN_RUN = "main_run", _("of the main run")
        SUBTOTAL = "subtotal", _("of the sum of the lines above")
        AMOUNT = "amount", _("fixed amount")

    organisation = models.ForeignKey(
        "projects.Organisation", on_delete=models.PROTECT, related_name="+"
    )
    version = models.ForeignKey(PlanVersion, on_delete=models.CASCADE, related_name="lines")
    key = models.SlugField(max_length=40)
    name = models.CharField(max_length=120)
    position = models.PositiveSmallIntegerField()
    base = models.CharField(max_length=10, choices=Base.choices)
    fraction = models.DecimalField(max_digits=12, decimal_places=9, null=True, blank=True)
    in_programme = models.BooleanField(
        default=True, help_text="Counts in the programme multiple: compute and contingency."
    )
    amount = models.DecimalField(max_digits=38, decimal_places=18)
    facility_energy_kwh = models.FloatField(null=True, blank=True)
    kgco2e = models.FloatField(null=True, blank=True)
    starts_on = models.DateField()
    ends_on = models.DateField(help_text="Exclusive.")

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(fields=["version", "key"], name="plan_line_key_once"),
            models.CheckConstraint(
                condition=models.Q(ends_on__gt=models.F("starts_on")),
                name="plan_line_ends_after_it_starts",
            ),
            models.CheckConstraint(
                condition=models.Q(amount__gte=0), name="plan_line_amount_not_negative"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Milestone(models.Model):
    """A point of the project's calendar by week; with a share it earns that part of a line."""

    organisation = models.ForeignKey(
        "projects.Organisation", on_delete=models.PROTECT, related_name="+"
    )
    plan = models.ForeignKey(Plan, on_delete=models.CASCADE, related_name="milestones")
    name = models.CharField(max_length=120)
    week = models.PositiveSmallIntegerField(help_text="Week of the plan; its first day is in W0.")
    line_key = models.CharField(max_length=40, blank=True)
    share_fraction = models.DecimalField(max_digits=7, decimal_places=6, null=True, blank=True)
    reached_on = models.DateField(null=True, blank=True)
    recorded_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["week", "name"]
        constraints = [
            models.UniqueConstraint(fields=["plan", "name"], name="milestone_name_once_per_plan"),
            models.CheckConstraint(
                condition=models.Q(share_fraction__isnull=True)
                | models.Q(share_fraction__gt=0, share_fraction__lte=1),
                name="milestone_share_of_a_line",
            ),
        ]

    def __str__(self) -> str:
        return f"W{self.week} {self.name}"


class RateCard(models.Model):
    """What the own hardware of a site costs from a month on. Never changed: the newest row holds.

    A correction is another row of the same site and first day; a trigger refuses anything else.
    """

    organisation = models.ForeignKey(
        "projects.Organisation", on_delete=models.PROTECT, related_name="+"
    )
    site = models.ForeignKey("runs.Site", on_delete=models.PROTECT, related_name="+")
    valid_from = models.DateField(help_text="The first day of a month.")
    currency = models.CharField(max_length=3)
    capital_per_accelerator = models.DecimalField(max_digits=38, decimal_places=18)
    life_years = models.DecimalField(max_digits=12, decimal_places=6)
    residual_fraction = models.DecimalField(max_digits=12, decimal_places=9, default=0)
    electricity_per_kwh = models.DecimalField(max_digits=38, decimal_places=18)
    staff_per_month = models.DecimalField(max_digits=38, decimal_places=18, default=0)
    space_per_month = models.DecimalField(max_digits=38, decimal_places=18, default=0)
    source = models.CharField(max_length=300)
    recorded_at = models.DateTimeField(default=timezone.now)
    recorded_by = models.CharField(max_length=200)

    class Meta:
        ordering = ["site", "-valid_from", "-id"]
        indexes = [models.Index(fields=["site", "-valid_from", "-id"], name="rate_card_in_force")]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(life_years__gt=0)
                & models.Q(residual_fraction__gte=0, residual_fraction__lt=1)
                & models.Q(capital_per_accelerator__gte=0, electricity_per_kwh__gte=0)
                & models.Q(staff_per_month__gte=0, space_per_month__gte=0),
                name="rate_card_can_be",
            ),
            models.CheckConstraint(
                condition=models.Q(valid_from__day=1), name="rate_card_from_a_month_on"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.site_id} from {self.valid_from:%Y-%m}"

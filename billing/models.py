"""Tables of charges: what came from where, what is published of each month, whose it is by day;
and the organisation's own dated prices and exchange rates.
"""

import uuid

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from projects.models import Organisation, Project


class Source(models.Model):
    """Where bills come from: one export, one account, one person's uploads."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=120)
    bill_format = models.CharField(max_length=20, default="auto")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["organisation", "name"], name="source_name_once_per_organisation"
            )
        ]

    def __str__(self) -> str:
        return self.name


class Delivery(models.Model):
    """The files of one command, upload or manifest, and what became of them."""

    class State(models.TextChoices):
        RECEIVED = "received", _("Received")
        PUBLISHED = "published", _("Published")
        NEEDS_CONFIRMATION = "needs_confirmation", _("Needs confirmation")
        REFUSED = "refused", _("Refused")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="+")
    source = models.ForeignKey(Source, on_delete=models.PROTECT, related_name="deliveries")
    state = models.CharField(max_length=20, choices=State.choices, default=State.RECEIVED)
    bill_format = models.CharField(max_length=20, default="auto")
    content_sha256 = models.CharField(max_length=64)
    declared_periods = ArrayField(models.CharField(max_length=7), default=list)
    confirm_shrink = models.BooleanField(default=False)
    received_at = models.DateTimeField(auto_now_add=True)
    received_by = models.CharField(max_length=200)
    job_id = models.UUIDField(null=True)
    rows = models.BigIntegerField(null=True)
    totals = models.JSONField(default=list)  # exact decimals as text, one entry a currency
    report = models.JSONField(default=dict)
    refusal = models.JSONField(null=True)
    settled_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-received_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["source", "content_sha256"],
                condition=~Q(state="refused"),
                name="same_bytes_once_per_source",
            )
        ]
        indexes = [models.Index(fields=["organisation", "-received_at"])]

    def __str__(self) -> str:
        return f"{self.source_id} {self.received_at:%Y-%m-%d %H:%M}"


class DeliveryFile(models.Model):
    """One received file; its bytes lie in the lake under their SHA-256."""

    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="+")
    delivery = models.ForeignKey(Delivery, on_delete=models.CASCADE, related_name="files")
    position = models.PositiveSmallIntegerField()
    name = models.CharField(max_length=255)
    sha256 = models.CharField(max_length=64, db_index=True)
    size_bytes = models.BigIntegerField()
    compression = models.CharField(max_length=10)
    already_imported = models.BooleanField(default=False)
    rows = models.BigIntegerField(null=True)

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(fields=["delivery", "position"], name="one_file_per_position")
        ]

    def __str__(self) -> str:
        return self.name


class BillingPeriod(models.Model):
    """One billing month of one source; readers follow `published_version` and nothing else."""

    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="+")
    source = models.ForeignKey(Source, on_delete=models.PROTECT, related_name="periods")
    dataset = models.CharField(max_length=30)
    start = models.DateField()
    published_version = models.OneToOneField(
        "PeriodVersion", on_delete=models.PROTECT, null=True, related_name="published_period"
    )

    class Meta:
        ordering = ["start"]
        constraints = [
            models.UniqueConstraint(
                fields=["source", "dataset", "start"], name="one_period_per_source_and_month"
            )
        ]

    def __str__(self) -> str:
        return f"{self.start:%Y-%m}"


class ChargeSlice(models.Model):
    """The rows of one delivery in one period: one immutable file of the lake."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="+")
    delivery = models.ForeignKey(Delivery, on_delete=models.PROTECT, related_name="slices")
    period = models.ForeignKey(BillingPeriod, on_delete=models.PROTECT, related_name="slices")
    is_main = models.BooleanField()  # else spill-over: a few rows in a neighbour's month
    path = models.CharField(max_length=300, unique=True)
    size_bytes = models.BigIntegerField()
    rows = models.BigIntegerField()
    totals = models.JSONField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["delivery", "period"], name="one_slice_per_delivery_and_period"
            )
        ]

    def __str__(self) -> str:
        return self.path


class PeriodVersion(models.Model):
    """What a period was known to hold from `known_at` until `superseded_at`; never changed."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="+")
    period = models.ForeignKey(BillingPeriod, on_delete=models.PROTECT, related_name="versions")
    number = models.PositiveIntegerField()
    delivery = models.ForeignKey(Delivery, on_delete=models.PROTECT, related_name="versions")
    slices = models.ManyToManyField(ChargeSlice, related_name="versions")
    known_at = models.DateTimeField()
    superseded_at = models.DateTimeField(null=True)
    rows = models.BigIntegerField()
    totals = models.JSONField()

    class Meta:
        ordering = ["number"]
        constraints = [
            models.UniqueConstraint(fields=["period", "number"], name="one_version_per_number"),
            models.UniqueConstraint(
                fields=["period"], condition=Q(superseded_at=None), name="one_version_in_force"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.period_id} v{self.number}"


class RuleSet(models.Model):
    """All allocation rules in force from `created_at` on; the highest number is in force now."""

    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="+")
    number = models.PositiveIntegerField()
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.CharField(max_length=200)

    class Meta:
        ordering = ["number"]
        constraints = [
            models.UniqueConstraint(
                fields=["organisation", "number"], name="one_rule_set_per_number"
            )
        ]

    def __str__(self) -> str:
        return f"rules {self.number}"


class AllocationRule(models.Model):
    """Charges that match go to the project; within a set the lowest position wins."""

    class Match(models.TextChoices):
        SUB_ACCOUNT = "sub_account", _("Account")
        TAG = "tag", _("Tag")
        RESOURCE = "resource", _("Resource")

    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="+")
    rule_set = models.ForeignKey(RuleSet, on_delete=models.CASCADE, related_name="rules")
    position = models.PositiveIntegerField()
    match = models.CharField(max_length=12, choices=Match.choices)
    key = models.CharField(max_length=200, blank=True)
    value = models.CharField(max_length=500)
    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="+")

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(fields=["rule_set", "position"], name="one_rule_per_position"),
            models.UniqueConstraint(
                fields=["rule_set", "match", "key", "value"], name="each_match_once_per_rule_set"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.match} {self.key}={self.value}"


class DailyCost(models.Model):
    """The roll-up of published versions: disposable, rebuilt identically from lake and rules."""

    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="+")
    version = models.ForeignKey(PeriodVersion, on_delete=models.CASCADE, related_name="daily_costs")
    rule_set = models.ForeignKey(RuleSet, on_delete=models.PROTECT, null=True, related_name="+")
    day = models.DateField()
    project = models.ForeignKey(Project, on_delete=models.PROTECT, null=True, related_name="+")
    provider_name = models.TextField(null=True)  # noqa: DJ001  # missing is not empty
    service_name = models.TextField(null=True)  # noqa: DJ001
    service_category = models.TextField(null=True)  # noqa: DJ001
    region_id = models.TextField(null=True)  # noqa: DJ001
    sub_account_id = models.TextField(null=True)  # noqa: DJ001
    charge_category = models.TextField(null=True)  # noqa: DJ001
    x_cost_class = models.CharField(max_length=40)
    x_accelerator = models.CharField(max_length=60, null=True)  # noqa: DJ001
    billing_currency = models.CharField(max_length=3)
    billed_cost = models.DecimalField(max_digits=38, decimal_places=18, null=True)
    effective_cost = models.DecimalField(max_digits=38, decimal_places=18, null=True)
    list_cost = models.DecimalField(max_digits=38, decimal_places=18, null=True)
    contracted_cost = models.DecimalField(max_digits=38, decimal_places=18, null=True)
    accelerator_h = models.DecimalField(max_digits=38, decimal_places=18, null=True)
    rows = models.BigIntegerField()

    class Meta:
        indexes = [
            models.Index(fields=["organisation", "day"]),
            models.Index(fields=["project", "day"]),
        ]

    def __str__(self) -> str:
        return f"{self.day} {self.x_cost_class}"


class PriceBook(models.Model):
    """A price list of the organisation's own: a contract, a provider's offer, a rate card."""

    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=120)
    source = models.CharField(max_length=300, blank=True)
    currency = models.CharField(max_length=3, default="USD")  # of prices that name none
    note = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["organisation", "name"], name="price_book_name_once_per_organisation"
            )
        ]

    def __str__(self) -> str:
        return self.name


class Price(models.Model):
    """What one unit costs from a day on; never changed, only succeeded or withdrawn."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="+")
    book = models.ForeignKey(PriceBook, on_delete=models.PROTECT, related_name="prices")
    cost_class = models.CharField(max_length=40)
    provider = models.CharField(max_length=40, blank=True)
    region = models.CharField(max_length=60, blank=True)
    accelerator_key = models.CharField(max_length=60, blank=True)
    instance_type = models.CharField(max_length=120, blank=True)
    purchase = models.CharField(max_length=20)
    unit = models.CharField(max_length=20)
    amount = models.DecimalField(max_digits=38, decimal_places=18)
    currency = models.CharField(max_length=3)
    valid_from = models.DateField()
    valid_to = models.DateField(null=True)  # the first day that is out
    source = models.CharField(max_length=300)
    source_date = models.CharField(max_length=10, blank=True)  # 2026, 2026-03 or 2026-03-31
    note = models.TextField(blank=True)
    recorded_at = models.DateTimeField(auto_now_add=True)
    recorded_by = models.CharField(max_length=200)
    withdrawn_at = models.DateTimeField(null=True)  # it was wrong: it counts on no day

    class Meta:
        ordering = ["cost_class", "provider", "region", "accelerator_key", "valid_from"]
        constraints = [
            models.UniqueConstraint(
                fields=[
                    "book",
                    "cost_class",
                    "provider",
                    "region",
                    "accelerator_key",
                    "instance_type",
                    "purchase",
                    "valid_from",
                ],
                condition=Q(withdrawn_at=None),
                name="one_price_a_key_and_day",
            ),
            models.CheckConstraint(condition=Q(amount__gte=0), name="price_not_negative"),
            models.CheckConstraint(
                condition=Q(valid_to=None) | Q(valid_to__gt=models.F("valid_from")),
                name="price_ends_after_it_begins",
            ),
        ]
        indexes = [models.Index(fields=["organisation", "cost_class", "valid_from"])]

    def __str__(self) -> str:
        return f"{self.cost_class} {self.amount} {self.currency}"


class ExchangeRate(models.Model):
    """How much of `quote` one `base` was worth on a day; never changed, only withdrawn."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="+")
    base = models.CharField(max_length=3)
    quote = models.CharField(max_length=3)
    rate = models.DecimalField(max_digits=38, decimal_places=18)
    on_date = models.DateField()
    source = models.CharField(max_length=300)
    recorded_at = models.DateTimeField(auto_now_add=True)
    recorded_by = models.CharField(max_length=200)
    withdrawn_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["base", "quote", "-on_date"]
        constraints = [
            models.UniqueConstraint(
                fields=["organisation", "base", "quote", "on_date"],
                condition=Q(withdrawn_at=None),
                name="one_exchange_rate_a_pair_and_day",
            ),
            models.CheckConstraint(condition=Q(rate__gt=0), name="exchange_rate_positive"),
        ]

    def __str__(self) -> str:
        return f"{self.base}/{self.quote} {self.on_date}"

"""Tables of charges: what came from where, and what is published of each month."""

import uuid

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from projects.models import Organisation


class Source(models.Model):
    """Where bills come from: one export, one account, one person's uploads; pulled or handed in.

    `connection` says where a pulled source lies and never holds a secret: see SourceSecret.
    `mapping` says how a CSV without a known format is read (billing/adapters/generic.py).
    """

    class Kind(models.TextChoices):
        UPLOAD = "upload", _("Files handed in")
        S3 = "s3", _("S3 bucket")
        BIGQUERY = "bigquery", _("Google BigQuery")
        GCS = "gcs", _("Google Cloud Storage")
        AZURE_BLOB = "azure_blob", _("Azure Blob")
        FOLDER = "folder", _("Watched folder")
        FSSPEC = "fsspec", _("Other file store")
        OWN_HARDWARE = "own_hardware", _("Own hardware")

    class State(models.TextChoices):
        NEW = "new", _("Not tried yet")
        OK = "ok", _("Working")
        INCOMPLETE = "incomplete", _("Incomplete")
        BROKEN = "broken", _("Broken")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=120)
    bill_format = models.CharField(max_length=20, default="auto")
    created_at = models.DateTimeField(auto_now_add=True)
    kind = models.CharField(max_length=20, choices=Kind.choices, default=Kind.UPLOAD)
    mapping = models.JSONField(default=dict)
    connection = models.JSONField(default=dict)
    every_h = models.PositiveSmallIntegerField(
        null=True
    )  # pulled every so many hours; None = never
    is_paused = models.BooleanField(default=False)
    state = models.CharField(max_length=12, choices=State.choices, default=State.NEW)
    last_error = models.JSONField(null=True)  # {code, message, at}
    tried_at = models.DateTimeField(null=True)
    succeeded_at = models.DateTimeField(null=True)
    watermark = models.JSONField(default=dict)  # how far a pull has come, in the connector's words

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
    # the provider's own time of this state of the export; orders deliveries where it is known
    version_at = models.DateTimeField(null=True)
    origin = models.JSONField(
        default=dict
    )  # manifest, assembly id, export time, where it came from
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

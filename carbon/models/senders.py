"""Tables of who sends readings: senders, their batches and gaps, bodies waiting to be booked."""

import uuid

from django.db import models

from projects.models import Organisation


class Sender(models.Model):
    """Something that sends readings of a site: an agent, a Prometheus, a pull, a file.

    The order of the kinds is the order of precedence: of several senders of one device-second the
    first counts.
    """

    class Kind(models.TextChoices):
        AGENT = "agent"
        REMOTE_WRITE = "remote_write"
        PROMQL = "promql"
        API = "api"
        FILE = "file"

    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="+")
    site = models.ForeignKey("runs.Site", on_delete=models.PROTECT, related_name="+")
    kind = models.CharField(max_length=12, choices=Kind.choices)
    name = models.CharField(max_length=200)  # the agent's node, the token's name, the pull's name
    version = models.CharField(max_length=80, blank=True)
    boot_id = models.CharField(max_length=64, blank=True)  # of the last batch
    last_sequence = models.BigIntegerField(null=True)
    first_seen_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()
    last_reading_at = models.DateTimeField(null=True)  # the newest time that a reading carries
    rows = models.BigIntegerField(default=0)
    rejected = models.BigIntegerField(default=0)
    duplicates = models.BigIntegerField(default=0)
    ignored = models.BigIntegerField(default=0)  # series that are not of our concern
    dropped = models.BigIntegerField(default=0)  # what the sender says that it had to drop
    refused_since = models.DateTimeField(null=True)
    last_error = models.CharField(max_length=400, blank=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(fields=["site", "kind", "name"], name="sender_once_per_site")
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class SenderBatch(models.Model):
    """A batch that was acknowledged; (boot, sequence) makes its repeat harmless."""

    organisation_id = models.UUIDField()
    sender = models.ForeignKey(Sender, on_delete=models.PROTECT, related_name="batches")
    boot_id = models.CharField(max_length=64)
    sequence = models.BigIntegerField()
    sha256 = models.CharField(max_length=64)
    version = models.CharField(max_length=80, blank=True)
    rows = models.IntegerField()
    rejected = models.IntegerField(default=0)
    start = models.DateTimeField(null=True)
    end = models.DateTimeField(null=True)
    received_at = models.DateTimeField()
    answer = models.JSONField(default=dict)

    class Meta:
        ordering = ["sender", "boot_id", "sequence"]
        constraints = [
            models.UniqueConstraint(
                fields=["sender", "boot_id", "sequence"], name="batch_of_sender_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.boot_id} {self.sequence}"


class SenderGap(models.Model):
    """Sequence numbers of a sender that were skipped; filled when they arrive late."""

    organisation_id = models.UUIDField()
    sender = models.ForeignKey(Sender, on_delete=models.PROTECT, related_name="gaps")
    boot_id = models.CharField(max_length=64)
    first_sequence = models.BigIntegerField()
    last_sequence = models.BigIntegerField()
    seen_at = models.DateTimeField()
    filled_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["seen_at"]

    def __str__(self) -> str:
        return f"{self.first_sequence} to {self.last_sequence}"


class IntakeBody(models.Model):
    """Readings that were stored before the sender was answered, and wait to be booked.

    `body` is our own packed form of what was understood; booking deletes the row in the
    transaction that stores the readings.
    """

    id = models.BigAutoField(primary_key=True)
    organisation_id = models.UUIDField()
    site_id = models.UUIDField()
    sender_id = models.IntegerField()
    sha256 = models.BinaryField(max_length=32)
    body = models.BinaryField()
    rows = models.IntegerField()
    received_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["sender_id", "sha256"], name="waiting_body_once")
        ]
        indexes = [models.Index(fields=["site_id", "id"], name="waiting_bodies_of_site")]

    def __str__(self) -> str:
        return f"{self.site_id} {self.pk}"


class DeviceNow(models.Model):
    """The newest reading of a device; disposable, the readings themselves are kept elsewhere."""

    device = models.OneToOneField(
        "runs.Device", on_delete=models.CASCADE, related_name="+", primary_key=True
    )
    organisation_id = models.UUIDField()
    site_id = models.UUIDField()
    sender_id = models.IntegerField()
    at = models.DateTimeField()
    power_w = models.FloatField(null=True)
    power_field = models.CharField(max_length=16, blank=True)  # average, instant, counter
    use = models.JSONField(default=dict)  # the UseReading's measures, MIG, job
    received_at = models.DateTimeField()

    class Meta:
        indexes = [models.Index(fields=["site_id"], name="devices_now_of_site")]

    def __str__(self) -> str:
        return f"{self.device_id} {self.at:%Y-%m-%dT%H:%M:%S}"


class JobSighting(models.Model):
    """A job that a sender saw on a device, from its first to its last sighting."""

    organisation_id = models.UUIDField()
    device = models.ForeignKey("runs.Device", on_delete=models.CASCADE, related_name="+")
    kind = models.CharField(max_length=12)  # slurm, kubernetes, environment, process
    job = models.CharField(max_length=200)
    run_name = models.CharField(max_length=200, blank=True)  # PROJECT/RUN, where the job says so
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()

    class Meta:
        ordering = ["first_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["device", "kind", "job", "first_at"], name="sighting_once"
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.job}"


class PromqlPull(models.Model):
    """A Prometheus-like server that is asked for energy by the hour."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="+")
    site = models.ForeignKey("runs.Site", on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=120)
    url = models.URLField(max_length=400)
    exporter = models.CharField(max_length=24)  # dcgm, nvidia_smi, kepler, ceems, node, ipmi
    matchers = models.CharField(max_length=400, blank=True)
    sealed = models.TextField(blank=True)  # bearer token or basic credentials
    enabled = models.BooleanField(default=True)
    pulled_until = models.DateTimeField(null=True)
    last_ok_at = models.DateTimeField(null=True)
    last_error = models.CharField(max_length=400, blank=True)

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["site", "name"], name="pull_once_per_site")]

    def __str__(self) -> str:
        return self.name

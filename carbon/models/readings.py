"""Tables of readings: what files and senders brought, the facts that energy is computed from."""

import uuid

from django.db import models

from projects.models import Organisation


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
    """A power reading of one device at one instant by one sender; the first received stays."""

    pk = models.CompositePrimaryKey("device_id", "at", "sender_id")
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
    sender_id = models.IntegerField(db_default=0)  # Sender; 0: a file or a batch without one
    power_w = models.FloatField()
    received_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.device_id} {self.at:%Y-%m-%dT%H:%M:%S}"


class MeteredInterval(models.Model):
    """Metered energy of one device in [start, end); intervals of one sender do not overlap."""

    pk = models.CompositePrimaryKey("device_id", "start", "end", "sender_id")
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
    sender_id = models.IntegerField(db_default=0)
    energy_millijoule = models.BigIntegerField()
    received_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.device_id} {self.start:%Y-%m-%dT%H:%M:%S}"


class CounterReading(models.Model):
    """A device's energy counter at one instant, as one sender read it.

    `epoch` names the life of the counter (node boot and driver load): across two epochs, or where
    the counter falls within one, it began again.
    """

    pk = models.CompositePrimaryKey("device_id", "at", "sender_id")
    organisation_id = models.UUIDField()
    device = models.ForeignKey(
        "runs.Device",
        on_delete=models.PROTECT,
        related_name="+",
        db_constraint=False,
        db_index=False,
    )
    at = models.DateTimeField()
    sender_id = models.IntegerField(db_default=0)
    counter_millijoule = models.BigIntegerField()
    epoch = models.BigIntegerField(db_default=0)  # 0: the sender does not know it
    received_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.device_id} {self.at:%Y-%m-%dT%H:%M:%S}"


class UseReading(models.Model):
    """What a device did at one instant: how busy, how warm, at which limit; None where unread."""

    pk = models.CompositePrimaryKey("device_id", "at", "sender_id")
    organisation_id = models.UUIDField()
    device = models.ForeignKey(
        "runs.Device",
        on_delete=models.PROTECT,
        related_name="+",
        db_constraint=False,
        db_index=False,
    )
    at = models.DateTimeField()
    sender_id = models.IntegerField(db_default=0)
    utilisation_fraction = models.FloatField(null=True)
    memory_used_bytes = models.BigIntegerField(null=True)
    temperature_c = models.FloatField(null=True)
    sm_clock_hz = models.BigIntegerField(null=True)
    power_limit_w = models.FloatField(null=True)
    throttle_reasons = models.BigIntegerField(null=True)  # NVML's bit mask
    xid = models.IntegerField(null=True)
    ecc_errors = models.BigIntegerField(null=True)  # uncorrected, since the driver was loaded
    received_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.device_id} {self.at:%Y-%m-%dT%H:%M:%S}"


class NodeReading(models.Model):
    """Power of a whole node at one instant, as its BMC, PSU or RAPL says.

    `includes_accelerators` says whether the GPUs are in it, so that they never count twice.
    """

    class Meter(models.TextChoices):
        BMC = "bmc"
        RAPL = "rapl"
        PDU = "pdu"

    pk = models.CompositePrimaryKey("node_id", "at", "meter", "sender_id")
    organisation_id = models.UUIDField()
    node = models.ForeignKey(
        "runs.Node",
        on_delete=models.PROTECT,
        related_name="+",
        db_constraint=False,
        db_index=False,
    )
    at = models.DateTimeField()
    meter = models.CharField(max_length=8, choices=Meter.choices)
    sender_id = models.IntegerField(db_default=0)
    power_w = models.FloatField()
    includes_accelerators = models.BooleanField()
    received_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.node_id} {self.at:%Y-%m-%dT%H:%M:%S}"


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

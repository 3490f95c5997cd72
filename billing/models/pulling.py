"""Tables of pulling: sealed credentials, every pull, and which objects were fetched."""

import uuid

from django.db import models
from django.utils.translation import gettext_lazy as _

from billing.models.charges import Delivery, Source
from projects.models import Organisation


class SourceSecret(models.Model):
    """A source's credential, sealed with a key outside the database; written, never shown."""

    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="+")
    source = models.OneToOneField(Source, on_delete=models.CASCADE, related_name="secret")
    sealed = models.TextField()
    key_id = models.CharField(max_length=16)  # which key sealed it
    set_at = models.DateTimeField()
    set_by = models.CharField(max_length=200)

    def __str__(self) -> str:
        return f"secret of {self.source_id}"


class Pull(models.Model):
    """One look at a pulled source: what was listed, fetched, delivered, or why it failed."""

    class State(models.TextChoices):
        RUNNING = "running", _("Running")
        OK = "ok", _("Done")
        NOTHING_NEW = "nothing_new", _("Nothing new")
        INCOMPLETE = "incomplete", _("Incomplete")
        FAILED = "failed", _("Failed")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="+")
    source = models.ForeignKey(Source, on_delete=models.PROTECT, related_name="pulls")
    job_id = models.UUIDField(null=True)
    state = models.CharField(max_length=12, choices=State.choices, default=State.RUNNING)
    started_at = models.DateTimeField(auto_now_add=True)
    ended_at = models.DateTimeField(null=True)
    objects_listed = models.BigIntegerField(default=0)
    objects_fetched = models.BigIntegerField(default=0)
    bytes_fetched = models.BigIntegerField(default=0)
    error = models.JSONField(null=True)  # {code, message, object}
    report = models.JSONField(default=dict)

    class Meta:
        ordering = ["-started_at"]
        indexes = [models.Index(fields=["source", "-started_at"])]

    def __str__(self) -> str:
        return f"{self.source_id} {self.started_at:%Y-%m-%d %H:%M}"


class PulledUnit(models.Model):
    """What was fetched and delivered as one: a manifest's files, an object, a table's partition.

    The same unit in the same state is not fetched again.
    """

    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="+")
    source = models.ForeignKey(Source, on_delete=models.PROTECT, related_name="units")
    key = models.CharField(max_length=1024)
    fingerprint = models.CharField(max_length=200)  # assembly id, ETag with size, export time
    delivery = models.ForeignKey(Delivery, on_delete=models.PROTECT, null=True, related_name="+")
    fetched_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["-fetched_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["source", "key", "fingerprint"], name="each_unit_state_once_per_source"
            )
        ]

    def __str__(self) -> str:
        return self.key

"""The append-only table of who changed what; triggers of the migrations refuse all but INSERT."""

from django.db import models


class AuditEntry(models.Model):
    """One change. `entry_hash` covers every other column and the hash of the entry before it."""

    organisation_id = models.UUIDField()
    position = models.PositiveBigIntegerField(help_text="1, 2, 3… within the organisation.")
    at = models.DateTimeField()
    user_id = models.BigIntegerField(null=True, blank=True)
    token_id = models.UUIDField(null=True, blank=True)
    actor_label = models.CharField(max_length=200)
    ip = models.CharField(max_length=45, null=True, blank=True)  # noqa: DJ001  # unknown is not ""
    action = models.CharField(max_length=80)
    object_type = models.CharField(max_length=80)
    object_id = models.CharField(max_length=200)
    before = models.JSONField(null=True, blank=True)
    after = models.JSONField(null=True, blank=True)
    reason = models.TextField(blank=True)
    previous_hash = models.CharField(max_length=64)
    entry_hash = models.CharField(max_length=64)

    class Meta:
        ordering = ["organisation_id", "position"]
        constraints = [
            models.UniqueConstraint(
                fields=["organisation_id", "position"], name="one_audit_entry_per_position"
            )
        ]
        indexes = [
            models.Index(
                fields=["organisation_id", "object_type", "object_id"], name="audit_by_object"
            )
        ]

    def __str__(self) -> str:
        return f"{self.position} {self.action} {self.object_type} {self.object_id}"

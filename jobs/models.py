"""The queue of record and the outbox. The broker holds nothing that is not here."""

import uuid

from django.core.serializers.json import DjangoJSONEncoder
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _


class Job(models.Model):
    """A piece of work: who wants it, how often it was tried, who holds it, how it ended."""

    class State(models.TextChoices):
        QUEUED = "queued", _("Waiting")
        RUNNING = "running", _("Running")
        SUCCEEDED = "succeeded", _("Done")
        FAILED = "failed", _("Failed")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    organisation_id = models.UUIDField()
    kind = models.CharField(max_length=80)
    scope = models.CharField(max_length=80, help_text="project:<id> or organisation")
    title = models.CharField(max_length=200, blank=True)
    payload = models.JSONField(encoder=DjangoJSONEncoder, default=dict)
    dedupe_key = models.CharField(max_length=200, blank=True)
    created_by_user_id = models.BigIntegerField(null=True, blank=True)
    created_by_token_id = models.UUIDField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    state = models.CharField(max_length=10, choices=State.choices, default=State.QUEUED)
    attempts = models.PositiveSmallIntegerField(default=0)
    max_attempts = models.PositiveSmallIntegerField(default=3)
    run_after = models.DateTimeField(db_default=Now())
    rung_at = models.DateTimeField(null=True, blank=True)
    lease_token = models.UUIDField(null=True, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    holder = models.CharField(max_length=120, blank=True)

    rows_done = models.PositiveBigIntegerField(default=0)
    rows_total = models.PositiveBigIntegerField(null=True, blank=True)
    message = models.CharField(max_length=500, blank=True)
    error = models.TextField(blank=True)
    result = models.JSONField(encoder=DjangoJSONEncoder, null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["created_at"]
        constraints = [
            # Only work that no worker has read anything for yet can stand for a new wish.
            models.UniqueConstraint(
                fields=["organisation_id", "kind", "dedupe_key"],
                condition=Q(state="queued", attempts=0) & ~Q(dedupe_key=""),
                name="one_untouched_job_per_dedupe_key",
            )
        ]
        indexes = [
            models.Index(
                fields=["run_after"],
                condition=Q(state__in=["queued", "running"]),
                name="jobs_not_over",
            ),
            models.Index(fields=["organisation_id", "-created_at"], name="jobs_of_organisation"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.id} {self.state}"


class Outbox(models.Model):
    """Something to send, written in the transaction of its cause and sent after it."""

    event_id = models.UUIDField(unique=True, default=uuid.uuid4, editable=False)
    organisation_id = models.UUIDField()
    topic = models.CharField(max_length=80)
    payload = models.JSONField(encoder=DjangoJSONEncoder, default=dict)
    created_at = models.DateTimeField(auto_now_add=True)
    send_after = models.DateTimeField(db_default=Now())
    sent_at = models.DateTimeField(null=True, blank=True)
    attempts = models.PositiveIntegerField(default=0)
    last_error = models.TextField(blank=True)

    class Meta:
        ordering = ["id"]
        indexes = [
            models.Index(
                fields=["send_after"], condition=Q(sent_at__isnull=True), name="outbox_waiting"
            )
        ]

    def __str__(self) -> str:
        return f"{self.topic} {self.event_id}"

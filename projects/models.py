"""Tables of who: organisations, people, projects, memberships, tokens; answers, sign-ins."""

import uuid

from django.contrib.auth.models import AbstractUser
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils.translation import gettext_lazy as _


class Organisation(models.Model):
    """Whose books these are. Every row of every room carries one."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=200)
    slug = models.SlugField(max_length=80, unique=True)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.name


class User(AbstractUser):
    """A person. `organisation_role` reaches over all projects; memberships reach into one."""

    class OrganisationRole(models.TextChoices):
        MEMBER = "member", _("Member")
        AUDITOR = "auditor", _("Auditor (reads everything)")
        ADMIN = "admin", _("Administrator")

    organisation = models.ForeignKey(
        Organisation, on_delete=models.PROTECT, null=True, blank=True, related_name="users"
    )
    organisation_role = models.CharField(
        max_length=10, choices=OrganisationRole.choices, default=OrganisationRole.MEMBER
    )


class Project(models.Model):
    """One training project: what plans, charges, energy and emissions are attributed to."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    organisation = models.ForeignKey(
        Organisation, on_delete=models.PROTECT, related_name="projects"
    )
    slug = models.SlugField(max_length=80)
    name = models.CharField(max_length=200)
    description = models.TextField(blank=True)
    currency = models.CharField(max_length=3, default="USD")
    starts_on = models.DateField(null=True, blank=True)
    is_synthetic = models.BooleanField(
        default=False, help_text="Demo data: every page of the project says so."
    )
    archived_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["organisation", "slug"], name="project_slug_once_per_organisation"
            )
        ]

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """A person's role in one project."""

    class Role(models.TextChoices):
        VIEWER = "viewer", _("Viewer")
        ANALYST = "analyst", _("Analyst")
        OWNER = "owner", _("Owner")

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role.choices)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "user"], name="one_membership_per_person")
        ]

    def __str__(self) -> str:
        return f"{self.user_id} {self.role} {self.project_id}"


class ApiToken(models.Model):
    """A program's key: shown once, stored as a peppered hash, scoped, expiring."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    organisation = models.ForeignKey(Organisation, on_delete=models.CASCADE, related_name="+")
    project = models.ForeignKey(
        Project, on_delete=models.CASCADE, null=True, blank=True, related_name="+"
    )
    # Keys of things that upper rooms own (runs.Site, billing.Source); those rooms check them.
    site_id = models.UUIDField(null=True, blank=True)
    source_id = models.UUIDField(null=True, blank=True)
    name = models.CharField(max_length=120)
    scopes = ArrayField(models.CharField(max_length=40))
    secret_hash = models.CharField(max_length=64)
    created_by = models.ForeignKey(
        User, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField()
    revoked_at = models.DateTimeField(null=True, blank=True)
    last_used_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return self.name


class RememberedAnswer(models.Model):
    """The answer to a POST with an Idempotency-Key, so that a retry changes nothing."""

    organisation = models.ForeignKey(Organisation, on_delete=models.CASCADE, related_name="+")
    caller = models.CharField(max_length=80)
    key = models.CharField(max_length=255)
    request_hash = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(null=True)
    # The answer's own text: a JSON column would reorder its keys and rewrite its numbers.
    body = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["organisation", "caller", "key"], name="one_answer_per_idempotency_key"
            )
        ]

    def __str__(self) -> str:
        return self.key


class SignInCount(models.Model):
    """How often one name was tried from one address in one minute. Shared by all web processes."""

    key = models.CharField(max_length=64, help_text="A hash: tried names are nobody's business.")
    minute = models.DateTimeField()
    tries = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["key", "minute"], name="one_count_per_key_and_minute")
        ]

    def __str__(self) -> str:
        return f"{self.key} {self.minute} {self.tries}"

"""Tables of what people add to reports: saved views, annotations of days, comments. No figures."""

import uuid

from django.db import models


class SavedView(models.Model):
    """The address of a page under a name; it holds the question, never an answer."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    organisation = models.ForeignKey(
        "projects.Organisation", on_delete=models.PROTECT, related_name="+"
    )
    owner = models.ForeignKey("projects.User", on_delete=models.CASCADE, related_name="+")
    name = models.CharField(max_length=120)
    path = models.CharField(max_length=200, help_text="Of our own host, such as /costs/.")
    query = models.TextField(blank=True)
    is_shared = models.BooleanField(
        default=False, help_text="Shown to all of the organisation; each sees what it may see."
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name", "created_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "path", "name"], name="saved_view_name_once_per_person_and_page"
            )
        ]

    def __str__(self) -> str:
        return self.name


class Annotation(models.Model):
    """What happened on a day of a project, for its charts: a restart, a change of price."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    organisation = models.ForeignKey(
        "projects.Organisation", on_delete=models.PROTECT, related_name="+"
    )
    project = models.ForeignKey("projects.Project", on_delete=models.PROTECT, related_name="+")
    day = models.DateField()
    text = models.CharField(max_length=200)
    author = models.CharField(max_length=200)
    author_user_id = models.IntegerField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    deleted_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["day", "created_at"]
        indexes = [models.Index(fields=["project", "day"], name="annotation_of_a_day")]

    def __str__(self) -> str:
        return f"{self.day} {self.text}"


class Comment(models.Model):
    """What somebody says of a thing: its kind and key are opaque here."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    organisation = models.ForeignKey(
        "projects.Organisation", on_delete=models.PROTECT, related_name="+"
    )
    project = models.ForeignKey(
        "projects.Project", on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    subject_kind = models.CharField(max_length=40)
    subject_key = models.CharField(max_length=200, blank=True)
    text = models.TextField(max_length=4000)
    author = models.CharField(max_length=200)
    author_user_id = models.IntegerField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    deleted_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["created_at"]
        indexes = [
            models.Index(
                fields=["organisation", "subject_kind", "subject_key"], name="comment_of_a_subject"
            )
        ]

    def __str__(self) -> str:
        return self.text[:60]

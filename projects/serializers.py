"""The JSON of projects, tokens and jobs. Unknown fields are refused: a typing error is no wish."""

from typing import Any

from rest_framework import serializers

from projects.models import ApiToken, Project
from projects.records import Scope, TokenReach


class StrictSerializer(serializers.Serializer[Any]):
    """Refuses fields that it does not know."""

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, dict):
            unknown = sorted(set(data) - set(self.fields))
            if unknown:
                message = "There is no such field here."
                raise serializers.ValidationError({unknown[0]: [message]}, code="unknown_field")
        return super().to_internal_value(data)


class ProjectDocument(serializers.ModelSerializer[Project]):
    """A project as the API shows it."""

    class Meta:
        model = Project
        fields = [
            "id",
            "slug",
            "name",
            "description",
            "currency",
            "starts_on",
            "is_synthetic",
            "created_at",
        ]


class NewProject(StrictSerializer):
    """What makes a project."""

    slug = serializers.SlugField(max_length=80)
    name = serializers.CharField(max_length=200)
    description = serializers.CharField(required=False, allow_blank=True, max_length=10_000)
    currency = serializers.RegexField(r"\A[A-Z]{3}\Z", required=False)
    starts_on = serializers.DateField(required=False, allow_null=True)


class TokenDocument(serializers.ModelSerializer[ApiToken]):
    """A token as the API shows it: never its secret."""

    project = serializers.SlugRelatedField[Any](slug_field="slug", read_only=True)
    scopes = serializers.ListField(child=serializers.CharField(), read_only=True)

    class Meta:
        model = ApiToken
        fields = [
            "id",
            "name",
            "scopes",
            "project",
            "site_id",
            "source_id",
            "created_at",
            "expires_at",
            "revoked_at",
            "last_used_at",
        ]


class NewTokenRequest(StrictSerializer):
    """What makes a token."""

    name = serializers.CharField(max_length=120)
    scopes = serializers.ListField(
        child=serializers.ChoiceField(choices=[scope.value for scope in Scope]), allow_empty=False
    )
    days = serializers.IntegerField(min_value=1, max_value=365)
    project = serializers.SlugField(required=False, allow_null=True)
    site_id = serializers.UUIDField(required=False, allow_null=True)
    source_id = serializers.UUIDField(required=False, allow_null=True)

    def reach(self) -> TokenReach:
        """What the token is limited to."""
        return TokenReach(
            project_slug=self.validated_data.get("project"),
            site_id=self.validated_data.get("site_id"),
            source_id=self.validated_data.get("source_id"),
        )


class NewTokenDocument(serializers.Serializer[Any]):
    """A token at birth: the only answer that holds its secret."""

    id = serializers.UUIDField(source="token_id")
    token = serializers.CharField(source="secret")


class JobDocument(serializers.Serializer[Any]):
    """How far a job has come."""

    id = serializers.UUIDField(source="job_id")
    kind = serializers.CharField()
    title = serializers.CharField()
    state = serializers.ChoiceField(choices=["queued", "running", "succeeded", "failed"])
    attempts = serializers.IntegerField()
    rows_done = serializers.IntegerField()
    rows_total = serializers.IntegerField(allow_null=True)
    rows_per_s = serializers.FloatField(allow_null=True)
    message = serializers.CharField()
    error = serializers.CharField()
    result = serializers.JSONField(allow_null=True)
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    finished_at = serializers.DateTimeField(allow_null=True)


class Refusal(serializers.Serializer[Any]):
    """Every answer of 400 and above."""

    code = serializers.CharField()
    message = serializers.CharField()
    field = serializers.CharField(required=False)
    row = serializers.IntegerField(required=False)

"""The shapes of the progress doors, as the OpenAPI document shows them."""

from typing import Any

from rest_framework import serializers

from runs.progress_records import EventKind


class ProgressPointDocument(serializers.Serializer[Any]):
    """What training code says after a step; all but `at` and `step` may be left out."""

    at = serializers.DateTimeField(help_text="ISO 8601 with its zone")
    step = serializers.IntegerField(min_value=0)
    tokens_total = serializers.IntegerField(
        required=False, help_text="tokens since the run's first step, over all restarts"
    )
    step_time_s = serializers.FloatField(
        required=False, help_text="s, the mean of the steps since the point before"
    )
    world_size = serializers.IntegerField(required=False, help_text="accelerators at work")
    loss = serializers.FloatField(required=False, help_text='"nan" and "inf" as texts')
    grad_norm = serializers.FloatField(required=False, help_text='"nan" and "inf" as texts')
    learning_rate = serializers.FloatField(required=False)
    data_s = serializers.FloatField(required=False, help_text="s of a step, waiting for data")
    communication_s = serializers.FloatField(
        required=False, help_text="s of a step, waiting for other devices"
    )
    checkpoint_s = serializers.FloatField(
        required=False, help_text="s since the point before, held up by checkpoints"
    )
    reported_mfu_fraction = serializers.FloatField(required=False, help_text="0..1, kept as said")
    data_shard = serializers.CharField(required=False, max_length=200)


class RunEventDocument(serializers.Serializer[Any]):
    """Something that happened to a run."""

    at = serializers.DateTimeField(help_text="when it began")
    kind = serializers.ChoiceField([one.value for one in EventKind])
    step = serializers.IntegerField(required=False)
    to_step = serializers.IntegerField(
        required=False, help_text="the step that a rollback or restart goes on from"
    )
    detail = serializers.CharField(required=False, max_length=500)
    duration_s = serializers.FloatField(required=False, help_text="s")


class ProgressColumnsDocument(serializers.Serializer[Any]):
    """The same as columns of one length."""

    at = serializers.ListField(child=serializers.DateTimeField())
    step = serializers.ListField(child=serializers.IntegerField())


class ProgressDocument(serializers.Serializer[Any]):
    """A delivery of progress: records, or the same by columns, and events."""

    format = serializers.CharField(required=False, help_text="costwatch-progress/1")
    source = serializers.CharField(required=False, max_length=120)  # type: ignore[assignment]
    records = ProgressPointDocument(many=True, required=False)
    points = ProgressColumnsDocument(required=False)
    events = RunEventDocument(many=True, required=False)


class RefusedDocument(serializers.Serializer[Any]):
    """A record that was not stored."""

    index = serializers.IntegerField(help_text="its place in its list, from 0")
    field = serializers.CharField(help_text="events.… for those of an event")
    reason = serializers.CharField()


class RecordedDocument(serializers.Serializer[Any]):
    """What became of a delivery; all but the refused is committed."""

    points_new = serializers.IntegerField()
    points_known = serializers.IntegerField()
    events_new = serializers.IntegerField()
    events_known = serializers.IntegerField()
    refused = RefusedDocument(many=True)


class ProgressDayDocument(serializers.Serializer[Any]):
    """A UTC day of a run."""

    day = serializers.DateField()
    tokens = serializers.IntegerField(allow_null=True, help_text="net of rollbacks")
    rework_tokens = serializers.IntegerField(allow_null=True)
    steps = serializers.IntegerField()
    step_time_mean_s = serializers.FloatField(allow_null=True)
    step_time_p50_s = serializers.FloatField(allow_null=True)
    step_time_p90_s = serializers.FloatField(allow_null=True)
    step_time_p99_s = serializers.FloatField(allow_null=True)
    mfu_fraction = serializers.FloatField(
        allow_null=True, help_text="0..1, of all allocated device-time"
    )
    step_mfu_fraction = serializers.FloatField(allow_null=True, help_text="0..1, inside steps")
    last_step = serializers.IntegerField(allow_null=True)
    last_tokens_total = serializers.IntegerField(allow_null=True)
    loss = serializers.FloatField(allow_null=True, help_text='"nan" and "inf" as texts')
    allocated_device_s = serializers.FloatField(allow_null=True)


class RunDocument(serializers.Serializer[Any]):
    """A run and where it stands."""

    slug = serializers.CharField()
    name = serializers.CharField()
    accelerator = serializers.CharField()
    accelerator_count = serializers.IntegerField()
    precision = serializers.CharField()
    start = serializers.DateTimeField(allow_null=True)
    end = serializers.DateTimeField(allow_null=True)
    parameters_active = serializers.FloatField(allow_null=True)
    flop_per_token = serializers.FloatField(allow_null=True)
    tokens_planned = serializers.IntegerField(allow_null=True)
    tokens_per_step = serializers.IntegerField(allow_null=True)
    plan_line_key = serializers.CharField()
    git_commit = serializers.CharField()
    external_url = serializers.CharField()
    at = serializers.DateTimeField(allow_null=True, help_text="its last word")
    step = serializers.IntegerField(allow_null=True)
    tokens_total = serializers.IntegerField(allow_null=True)
    loss = serializers.FloatField(allow_null=True)
    step_time_s = serializers.FloatField(allow_null=True)
    mfu_fraction = serializers.FloatField(allow_null=True, help_text="0..1, in its last steps")
    is_silent = serializers.BooleanField()


class MfuBasisDocument(serializers.Serializer[Any]):
    """What utilisation is measured against."""

    peak_flop_per_s = serializers.FloatField()
    denominator = serializers.CharField()
    flop_per_token = serializers.FloatField()
    flop_basis = serializers.CharField()


class ProgressAnswer(serializers.Serializer[Any]):
    """The progress of a run by day."""

    run = RunDocument()
    mfu_basis = MfuBasisDocument(allow_null=True)
    days = ProgressDayDocument(many=True)
    events = RunEventDocument(many=True)

"""The shapes of the power and energy doors, as the OpenAPI document shows them."""

from datetime import datetime
from typing import Any

from rest_framework import serializers

from carbon.instants import settled


class SampleDocument(serializers.Serializer[Any]):
    """A power reading of one device at one instant."""

    at = serializers.DateTimeField(help_text="ISO 8601, UTC")
    device_uuid = serializers.CharField(max_length=120)
    power_w = serializers.FloatField(help_text="W")
    node = serializers.CharField(required=False)
    model = serializers.CharField(required=False)
    run = serializers.CharField(required=False)


class IntervalDocument(serializers.Serializer[Any]):
    """Metered energy of one device in [start, end)."""

    start = serializers.DateTimeField(help_text="ISO 8601, UTC")
    end = serializers.DateTimeField(help_text="ISO 8601, UTC, exclusive")
    device_uuid = serializers.CharField(max_length=120)
    energy_millijoule = serializers.IntegerField(help_text="mJ")
    node = serializers.CharField(required=False)
    model = serializers.CharField(required=False)
    run = serializers.CharField(required=False)


class PowerBatch(serializers.Serializer[Any]):
    """What a sender posts."""

    samples = SampleDocument(many=True, required=False)
    intervals = IntervalDocument(many=True, required=False)


class PowerReceipt(serializers.Serializer[Any]):
    """What became of a batch; everything in it is committed."""

    site = serializers.CharField()
    rows = serializers.IntegerField()
    rejected = serializers.IntegerField(help_text="set aside: they cannot be true")
    duplicates = serializers.IntegerField(help_text="known already")
    devices = serializers.IntegerField()
    reasons = serializers.DictField(child=serializers.IntegerField())


class AgentDocument(serializers.Serializer[Any]):
    """Who sends."""

    name = serializers.CharField(max_length=120)
    version = serializers.CharField(max_length=80, required=False)


class AgentDeviceDocument(serializers.Serializer[Any]):
    """A device as the agent names it; `epoch` names the life of its energy counter."""

    uuid = serializers.CharField(max_length=120)
    model = serializers.CharField(max_length=120, required=False)
    power_limit_w = serializers.FloatField(required=False, allow_null=True, help_text="W")
    epoch = serializers.IntegerField(required=False)
    energy_scope = serializers.ChoiceField(["gpu", "module"], required=False)
    mig = serializers.DictField(required=False, allow_null=True)


def _column(child: serializers.Field[Any, Any, Any, Any], text: str) -> Any:
    """A column as long as `at_ms`; null where nothing was read."""
    return serializers.ListField(child=child, required=False, help_text=text)


class AgentReadingsDocument(serializers.Serializer[Any]):
    """Readings by column, of equal length; all but `device` and `at_ms` may be left out."""

    device = serializers.ListField(
        child=serializers.IntegerField(), help_text="index into `devices`"
    )
    at_ms = serializers.ListField(
        child=serializers.IntegerField(), help_text="ms since 1970-01-01, UTC"
    )
    counter_millijoule = _column(serializers.IntegerField(allow_null=True), "mJ")
    power_w = _column(serializers.FloatField(allow_null=True), "W")
    power_field = serializers.ChoiceField(["average", "instant", ""], required=False)
    utilisation_fraction = _column(serializers.FloatField(allow_null=True), "0 to 1")
    memory_used_bytes = _column(serializers.IntegerField(allow_null=True), "bytes")
    temperature_c = _column(serializers.FloatField(allow_null=True), "°C")
    sm_clock_hz = _column(serializers.IntegerField(allow_null=True), "Hz")
    power_limit_w = _column(serializers.FloatField(allow_null=True), "W")
    throttle_reasons = _column(serializers.IntegerField(allow_null=True), "NVML's bit mask")
    xid = _column(serializers.IntegerField(allow_null=True), "the driver's error number")
    ecc_errors = _column(serializers.IntegerField(allow_null=True), "uncorrected ones")


class AgentNodeReadingDocument(serializers.Serializer[Any]):
    """Power of the host by one of its meters."""

    at_ms = serializers.IntegerField()
    meter = serializers.ChoiceField(["bmc", "rapl", "pdu"])
    power_w = serializers.FloatField(help_text="W")
    includes_accelerators = serializers.BooleanField()


class AgentJobDocument(serializers.Serializer[Any]):
    """A job that was seen on a device."""

    device = serializers.IntegerField(help_text="index into `devices`")
    kind = serializers.ChoiceField(["slurm", "kubernetes", "environment", "process"])
    job = serializers.CharField(max_length=200)
    run = serializers.CharField(max_length=200, required=False, help_text="PROJECT/RUN")
    at_ms = serializers.IntegerField()


class AgentBatchDocument(serializers.Serializer[Any]):
    """A batch of an agent; (boot, sequence) names it, and its repeat changes nothing."""

    format = serializers.ChoiceField(["costwatch-agent/1"])
    agent = AgentDocument()
    boot = serializers.CharField(max_length=64)
    sequence = serializers.IntegerField(help_text="counts from 1 in each boot")
    dropped = serializers.IntegerField(required=False, help_text="readings lost since the last")
    node = serializers.CharField(max_length=120, required=False)
    sent_at = serializers.DateTimeField(required=False)
    devices = AgentDeviceDocument(many=True)
    readings = AgentReadingsDocument()
    node_readings = AgentNodeReadingDocument(many=True, required=False)
    jobs = AgentJobDocument(many=True, required=False)


class AgentReceipt(serializers.Serializer[Any]):
    """What became of an agent's batch; everything in it is committed."""

    site = serializers.CharField()
    sequence = serializers.IntegerField()
    rows = serializers.IntegerField()
    rejected = serializers.IntegerField(help_text="set aside: they cannot be true")
    reasons = serializers.DictField(child=serializers.IntegerField())


class DaysQuery(serializers.Serializer[Any]):
    """The days to sum, both inclusive, and the instant whose knowledge counts."""

    start_on = serializers.DateField(required=False, allow_null=True, default=None)
    end_on = serializers.DateField(required=False, allow_null=True, default=None)
    as_of = serializers.DateTimeField(required=False, allow_null=True, default=None)

    def validate_as_of(self, value: datetime | None) -> datetime | None:
        """Of what may still change no answer is given: the latest instant before it, instead."""
        return settled(value) if value is not None else None


class EnergyDayDocument(serializers.Serializer[Any]):
    """Energy of one UTC day at three boundaries."""

    day = serializers.DateField()
    accelerator_energy_kwh = serializers.FloatField()
    it_energy_kwh = serializers.FloatField(allow_null=True)
    facility_energy_kwh = serializers.FloatField(allow_null=True)
    coverage_fraction = serializers.FloatField(allow_null=True)
    measured_fraction = serializers.FloatField(allow_null=True)
    spread_fraction = serializers.FloatField(allow_null=True)
    estimated_fraction = serializers.FloatField(allow_null=True)


class EnergyDocument(serializers.Serializer[Any]):
    """Energy of a project by day."""

    project = serializers.CharField()
    days = EnergyDayDocument(many=True)
    as_of = serializers.DateTimeField(
        allow_null=True, help_text="what was asked, or the latest instant before it that is settled"
    )


class FactorDocument(serializers.Serializer[Any]):
    """A factor as the answer used it."""

    id = serializers.CharField()
    kind = serializers.CharField()
    value = serializers.FloatField()
    unit = serializers.CharField()
    year = serializers.IntegerField(allow_null=True)
    source = serializers.CharField()  # type: ignore[assignment]  # the name of the fact
    level = serializers.CharField()
    basis = serializers.CharField()
    version = serializers.CharField()


class ScopeDocument(serializers.Serializer[Any]):
    """Energy and emissions of one category of the GHG Protocol."""

    scope_category = serializers.CharField()
    facility_energy_kwh = serializers.FloatField(allow_null=True)
    location_kgco2e = serializers.FloatField(allow_null=True)
    upstream_kgco2e = serializers.FloatField(allow_null=True)
    embodied_kgco2e = serializers.FloatField(allow_null=True)
    overhead_energy_kwh = serializers.FloatField(allow_null=True)


class EmissionsDocument(serializers.Serializer[Any]):
    """Energy and emissions of a project in sum (also `from` and `to`, the days)."""

    as_of = serializers.DateTimeField(
        allow_null=True, help_text="what was asked, or the latest instant before it that is settled"
    )
    accelerator_energy_kwh = serializers.FloatField(allow_null=True)
    it_energy_kwh = serializers.FloatField(allow_null=True)
    facility_energy_kwh = serializers.FloatField(allow_null=True)
    scope_2_location_kgco2e = serializers.FloatField(allow_null=True)
    scope_2_market_kgco2e = serializers.FloatField(
        allow_null=True, help_text="contracts matched over the calendar year"
    )
    scope_2_market_hourly_kgco2e = serializers.FloatField(
        allow_null=True, help_text="contracts matched hour by hour"
    )
    market_basis = serializers.ListField(child=serializers.CharField())
    contracted_kwh = serializers.FloatField(allow_null=True)
    contracted_hourly_kwh = serializers.FloatField(allow_null=True)
    upstream_kgco2e = serializers.FloatField(allow_null=True)
    embodied_kgco2e = serializers.FloatField(allow_null=True)
    water_l = serializers.FloatField(allow_null=True)
    water_on_site_l = serializers.FloatField(allow_null=True)
    water_source_l = serializers.FloatField(allow_null=True)
    scopes = ScopeDocument(many=True)
    coverage_fraction = serializers.FloatField(allow_null=True)
    measured_fraction = serializers.FloatField(allow_null=True)
    spread_fraction = serializers.FloatField(allow_null=True)
    estimated_fraction = serializers.FloatField(allow_null=True)
    factors = FactorDocument(many=True)

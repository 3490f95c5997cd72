"""The shapes of the power and energy doors, as the OpenAPI document shows them."""

from typing import Any

from rest_framework import serializers


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


class DaysQuery(serializers.Serializer[Any]):
    """The days to sum, both inclusive, and the instant whose knowledge counts."""

    start_on = serializers.DateField(required=False, allow_null=True, default=None)
    end_on = serializers.DateField(required=False, allow_null=True, default=None)
    as_of = serializers.DateTimeField(required=False, allow_null=True, default=None)


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


class EmissionsDocument(serializers.Serializer[Any]):
    """Energy and emissions of a project in sum (also `from` and `to`, the days)."""

    accelerator_energy_kwh = serializers.FloatField(allow_null=True)
    it_energy_kwh = serializers.FloatField(allow_null=True)
    facility_energy_kwh = serializers.FloatField(allow_null=True)
    scope_2_location_kgco2e = serializers.FloatField(allow_null=True)
    scope_2_market_kgco2e = serializers.FloatField(allow_null=True)
    market_basis = serializers.ListField(child=serializers.CharField())
    embodied_kgco2e = serializers.FloatField(allow_null=True)
    water_l = serializers.FloatField(allow_null=True)
    coverage_fraction = serializers.FloatField(allow_null=True)
    measured_fraction = serializers.FloatField(allow_null=True)
    spread_fraction = serializers.FloatField(allow_null=True)
    estimated_fraction = serializers.FloatField(allow_null=True)
    factors = FactorDocument(many=True)

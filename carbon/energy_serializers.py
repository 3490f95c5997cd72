"""The shapes of energy tables, as the OpenAPI document shows them."""

from typing import Any

from rest_framework import serializers


class EnergySumDocument(serializers.Serializer[Any]):
    """Energy and emissions of a group or in sum; what is unknown is null."""

    accelerator_energy_kwh = serializers.FloatField()
    it_energy_kwh = serializers.FloatField(allow_null=True)
    facility_energy_kwh = serializers.FloatField(allow_null=True)
    scope_2_location_kgco2e = serializers.FloatField(allow_null=True)
    scope_2_market_kgco2e = serializers.FloatField(allow_null=True)
    measured_fraction = serializers.FloatField(allow_null=True)
    spread_fraction = serializers.FloatField(allow_null=True)
    estimated_fraction = serializers.FloatField(allow_null=True)
    coverage_fraction = serializers.FloatField(allow_null=True)


class EnergyRowDocument(EnergySumDocument):
    """A row with its key and name."""

    key = serializers.CharField()
    name = serializers.CharField()


class EnergyTableDocument(serializers.Serializer[Any]):
    """A table of energy; `adds_up` says whether the rows sum to the total."""

    by = serializers.CharField()
    project = serializers.CharField(allow_null=True)
    run = serializers.CharField(allow_null=True)
    site = serializers.CharField(allow_null=True)
    to = serializers.DateTimeField(allow_null=True)
    as_of = serializers.DateTimeField(
        allow_null=True, help_text="what was asked, or the latest instant before it that is settled"
    )
    rows = EnergyRowDocument(many=True)
    total = EnergySumDocument()
    adds_up = serializers.BooleanField()

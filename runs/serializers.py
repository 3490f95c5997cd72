"""The shapes of the catalogue's doors, as the OpenAPI document shows them."""

from typing import Any

from rest_framework import serializers


class PeaksField(serializers.DictField):
    """Peaks in FLOP/s by precision: fp32, tf32, bf16, fp16, fp8, fp4."""

    child = serializers.FloatField()


class NewAcceleratorDocument(serializers.Serializer[Any]):
    """An own accelerator; one with a shipped key overrides the shipped row."""

    key = serializers.CharField(help_text="small letters, digits and hyphens")
    name = serializers.CharField(required=False)
    vendor = serializers.CharField(required=False)
    form_factor = serializers.CharField(required=False)
    launch_year = serializers.IntegerField(required=False, allow_null=True)
    peak_dense_flop_per_s = PeaksField(required=False, help_text="FLOP/s, without sparsity")
    peak_sparse_flop_per_s = PeaksField(required=False, help_text="FLOP/s, with sparsity")
    int8_dense_op_per_s = serializers.FloatField(required=False, allow_null=True)
    int8_sparse_op_per_s = serializers.FloatField(required=False, allow_null=True)
    tdp_w = serializers.FloatField(required=False, allow_null=True, help_text="W")
    max_power_w = serializers.FloatField(required=False, allow_null=True, help_text="W")
    memory_gb = serializers.FloatField(required=False, allow_null=True, help_text="GB")
    memory_type = serializers.CharField(required=False)
    memory_bandwidth_gb_per_s = serializers.FloatField(
        required=False, allow_null=True, help_text="GB/s"
    )
    accelerators_per_node = serializers.IntegerField(required=False, allow_null=True)
    interconnect = serializers.CharField(required=False)
    unit_note = serializers.CharField(required=False, help_text="what one of them is")
    note = serializers.CharField(required=False)
    source = serializers.CharField()  # type: ignore[assignment]  # the name of the fact
    source_date = serializers.CharField(required=False, help_text="YYYY, YYYY-MM or YYYY-MM-DD")


class AcceleratorDocument(NewAcceleratorDocument):
    """An accelerator; what is not published is null or absent from the peaks."""

    is_own = serializers.BooleanField(help_text="a row of the organisation's own")
    overrides_shipped = serializers.BooleanField()


class NewInstanceTypeDocument(serializers.Serializer[Any]):
    """An own instance type; one with a shipped name overrides the shipped row."""

    provider = serializers.CharField()
    name = serializers.CharField()
    accelerator = serializers.CharField(help_text="key of the catalogue")
    accelerator_count = serializers.CharField(help_text="a decimal; 0.125 is an eighth of a card")
    network_gbit_per_s = serializers.FloatField(required=False, allow_null=True)
    note = serializers.CharField(required=False)
    source = serializers.CharField()  # type: ignore[assignment]  # the name of the fact
    source_date = serializers.CharField(required=False)


class InstanceTypeDocument(NewInstanceTypeDocument):
    """An instance type and the accelerators in it."""

    is_own = serializers.BooleanField()
    overrides_shipped = serializers.BooleanField()

"""The catalogue: dense and sparse peaks apart, every row with its source, own rows win."""

import csv
from decimal import Decimal

import pytest

from runs.catalogue import (
    DATA,
    accelerator_from_text,
    accelerator_name_patterns,
    shipped_accelerators,
    shipped_instance_types,
)
from runs.configuration import apply
from runs.selectors import accelerator, instance_type
from runs.services import RunsError
from tests.builders import organisation
from tests.carbon.builders import operator


def test_the_h100_has_its_dense_peak_not_the_advertised_sparse_one():
    h100 = accelerator("h100-sxm-80gb")
    assert h100.peak_dense_flop_per_s["bf16"] == 989.4e12
    assert h100.peak_sparse_flop_per_s["bf16"] == 1978.9e12
    assert (h100.tdp_w, h100.memory_gb) == (700, 80)


def test_dense_is_never_above_sparse():
    for spec in shipped_accelerators().values():
        for precision, sparse in spec.peak_sparse_flop_per_s.items():
            assert spec.peak_dense_flop_per_s[precision] < sparse, (spec.key, precision)


@pytest.mark.parametrize("name", ["accelerators.csv", "instance_types.csv"])
def test_every_row_names_its_source_and_its_date(name):
    with (DATA / name).open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            assert row["source"], row
            assert row["source_date"], row


def test_every_instance_type_and_name_leads_to_a_known_accelerator():
    known = set(shipped_accelerators())
    assert {spec.accelerator_key for spec in shipped_instance_types().values()} <= known
    assert {key for _pattern, key in accelerator_name_patterns()} == known


@pytest.mark.parametrize(
    ("provider", "name", "key", "count"),
    [
        ("aws", "p5.48xlarge", "h100-sxm-80gb", 8),
        ("aws", "p5.4xlarge", "h100-sxm-80gb", 1),
        ("gcp", "a3-megagpu-8g", "h100-sxm-80gb", 8),
        ("gcp", "g4-standard-6", "rtx-pro-6000-96gb", Decimal("0.125")),
        ("azure", "Standard_ND96isr_H100_v5", "h100-sxm-80gb", 8),
        ("azure", "ND96isr H100 v5", "h100-sxm-80gb", 8),
    ],
)
def test_an_instance_type_tells_its_accelerators(provider, name, key, count):
    found = instance_type(provider, name)
    assert (found.accelerator_key, found.accelerator_count) == (key, count)


def test_an_unknown_instance_type_is_none():
    assert instance_type("aws", "m7i.large") is None


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("NVIDIA H100 80GB HBM3", "h100-sxm-80gb"),
        ("NVIDIA H100 PCIe", "h100-pcie-80gb"),
        ("NVIDIA A100 80GB PCIe", "a100-pcie-80gb"),
        ("Nvidia Tesla A100 GPU running in Iowa", "a100-sxm-40gb"),
        ("H200 141GB GPU attached to Spot Preemptible VMs", "h200-sxm-141gb"),
        ("NC40ads H100 v5", "h100-nvl-94gb"),
        ("AMD Instinct MI300X", "mi300x-192gb"),
        ("Standard Storage US Regional", None),
        ("NVIDIA L40", None),
    ],
)
def test_a_text_tells_its_accelerator(text, key):
    assert accelerator_from_text(text) == key


@pytest.mark.django_db
def test_an_own_row_overrides_and_extends_the_catalogue():
    mine = {
        "key": "my-chip",
        "peak_dense_flop_per_s": {"bf16": 1e15},
        "tdp_w": 900,
        "source": "datasheet",
    }
    apply(operator(), {"accelerators": [mine, {**mine, "key": "h100-sxm-80gb"}]})
    of = organisation().pk
    assert accelerator("my-chip", of).peak_dense_flop_per_s == {"bf16": 1e15}
    assert accelerator("h100-sxm-80gb", of).tdp_w == 900
    assert accelerator("h100-sxm-80gb").tdp_w == 700


@pytest.mark.django_db
def test_an_own_row_without_a_source_is_refused():
    with pytest.raises(RunsError, match="source"):
        apply(operator(), {"accelerators": [{"key": "my-chip"}]})


def test_an_unknown_key_says_what_to_do():
    with pytest.raises(LookupError, match="configuration"):
        accelerator("nothing")

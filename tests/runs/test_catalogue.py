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


def dense_and_sparse(spec):
    """(precision, dense, sparse) wherever a sparse peak is published."""
    pairs = [
        (precision, spec.peak_dense_flop_per_s[precision], sparse)
        for precision, sparse in spec.peak_sparse_flop_per_s.items()
    ]
    if spec.int8_sparse_op_per_s is not None:
        pairs.append(("int8", spec.int8_dense_op_per_s, spec.int8_sparse_op_per_s))
    return pairs


@pytest.mark.parametrize("spec", shipped_accelerators().values(), ids=lambda spec: spec.key)
def test_dense_and_sparse_peaks_are_never_mistaken_for_each_other(spec):
    for precision, dense, sparse in dense_and_sparse(spec):
        assert dense < sparse, precision


# 4:1 sparsity: AWS quotes one sparse figure for all precisions.
NOT_TWO_TO_FOUR = {"trainium2"}


@pytest.mark.parametrize("spec", shipped_accelerators().values(), ids=lambda spec: spec.key)
def test_two_to_four_sparsity_doubles_the_dense_peak(spec):
    for precision, dense, sparse in dense_and_sparse(spec):
        if spec.key not in NOT_TWO_TO_FOUR:
            # Datasheets round each of the two: the L40S prints 362 and 733.
            assert sparse / dense == pytest.approx(2, rel=0.015), precision


def test_the_exceptions_from_two_to_four_are_real():
    for key in NOT_TWO_TO_FOUR:
        ratios = [s / d for _p, d, s in dense_and_sparse(shipped_accelerators()[key])]
        assert max(ratios) > 2.5


@pytest.mark.parametrize("spec", shipped_accelerators().values(), ids=lambda spec: spec.key)
def test_a_faster_precision_has_no_lower_dense_peak(spec):
    order = ("fp32", "tf32", "bf16", "fp8", "fp4")
    peaks = [spec.peak_dense_flop_per_s[p] for p in order if p in spec.peak_dense_flop_per_s]
    assert peaks == sorted(peaks)


@pytest.mark.parametrize("spec", shipped_accelerators().values(), ids=lambda spec: spec.key)
def test_every_row_knows_its_memory_its_form_and_its_family(spec):
    assert spec.memory_gb > 0
    assert spec.memory_bandwidth_gb_per_s > 100
    assert spec.memory_type
    assert spec.form_factor
    assert spec.family


@pytest.mark.parametrize(
    ("key", "count"),
    [
        ("h100-sxm-80gb", 8),
        ("gb200-186gb", 4),
        ("mi250x-128gb", 4),
        ("mi250x-gcd-64gb", 8),
        ("tpu-v4", 4),
        ("trainium2", 16),
        ("l40s-48gb", None),
    ],
)
def test_a_row_says_how_many_a_usual_node_holds(key, count):
    assert accelerator(key).accelerators_per_node == count


def test_one_gcd_is_half_a_module():
    module, gcd = accelerator("mi250x-128gb"), accelerator("mi250x-gcd-64gb")
    assert gcd.peak_dense_flop_per_s["bf16"] * 2 == module.peak_dense_flop_per_s["bf16"]
    assert (gcd.memory_gb * 2, gcd.tdp_w * 2) == (module.memory_gb, module.tdp_w)


@pytest.mark.parametrize("name", ["accelerators.csv", "instance_types.csv"])
def test_every_row_names_its_source_and_its_date(name):
    with (DATA / name).open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            assert row["source"], row
            assert row["source_date"], row


@pytest.mark.parametrize(
    ("name", "gbit_per_s"),
    [("p5.48xlarge", 3200), ("p4d.24xlarge", 400), ("g5.xlarge", None)],
)
def test_an_instance_type_says_its_network_where_it_is_known(name, gbit_per_s):
    assert instance_type("aws", name).network_gbit_per_s == gbit_per_s


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
        ("AMD Instinct MI250X", "mi250x-128gb"),
        ("AMD Instinct MI250", "mi250-128gb"),
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

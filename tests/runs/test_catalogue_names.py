"""What people call an accelerator leads to one row, and says what the name left open."""

from decimal import Decimal

import pytest

from runs.catalogue import accelerator_aliases, shipped_accelerators
from runs.configuration import apply
from runs.naming import plain_name
from runs.selectors import accelerator_named
from tests.builders import organisation
from tests.carbon.builders import operator


@pytest.mark.parametrize("key", sorted(shipped_accelerators()))
def test_a_key_is_its_row_and_nothing_is_assumed(key):
    found = accelerator_named(key)
    assert (found.spec.key, found.assumed) == (key, None)


@pytest.mark.parametrize("key", sorted(shipped_accelerators()))
def test_a_full_name_leads_to_its_row_with_and_without_the_maker(key):
    spec = shipped_accelerators()[key]
    assert accelerator_named(spec.name).spec.key == key
    assert accelerator_named(plain_name(spec)).spec.key == key


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("V100 SXM2 32GB", "v100-sxm2-32gb"),
        ("A100 SXM 40GB", "a100-sxm-40gb"),
        ("A100 PCIe 80GB", "a100-pcie-80gb"),
        ("H100 SXM 80GB", "h100-sxm-80gb"),
        ("H100 NVL 94GB", "h100-nvl-94gb"),
        ("H800 SXM 80GB", "h800-sxm-80gb"),
        ("GH200 96GB", "gh200-96gb"),
        ("GH200 96GB (H100 die)", "gh200-96gb"),
        ("GB200 (per GPU)", "gb200-186gb"),
        ("GB300 (per GPU)", "gb300-279gb"),
        ("B200 SXM 180GB", "b200-sxm-180gb"),
        ("MI300X 192GB", "mi300x-192gb"),
        ("TPU v4 (chip)", "tpu-v4"),
        ("TPU v6e Trillium (chip)", "tpu-v6e"),
        ("TPU v7 Ironwood (chip)", "tpu-v7"),
        ("Trainium2 (chip)", "trainium2"),
        ("Gaudi3 128GB OAM", "gaudi3-128gb"),
        ("L40S", "l40s-48gb"),
        ("H20", "h20-96gb"),
        ("NVIDIA A100-SXM4-80GB", "a100-sxm-80gb"),
        ("nvidia a100 80 gb pcie", "a100-pcie-80gb"),
        ("NVIDIA H100 80GB HBM3 SXM5", "h100-sxm-80gb"),
        ("h100pcie", "h100-pcie-80gb"),
        ("AMD Instinct MI300X", "mi300x-192gb"),
        ("MI250X GCD", "mi250x-gcd-64gb"),
        ("v5e", "tpu-v5e"),
        ("TPUv5e", "tpu-v5e"),
        ("TPU v5litepod", "tpu-v5e"),
    ],
)
def test_a_name_that_says_it_all_assumes_nothing(name, key):
    found = accelerator_named(name)
    assert (found.spec.key, found.assumed) == (key, None)


@pytest.mark.parametrize(
    ("name", "key", "said"),
    [
        ("V100", "v100-sxm2-32gb", "form or memory"),
        ("A100", "a100-sxm-80gb", "form or memory"),
        ("a100 80gb", "a100-sxm-80gb", "form"),
        ("A100 40GB", "a100-sxm-40gb", "form"),
        ("A100 PCIe", "a100-pcie-80gb", "memory"),
        ("A100 SXM", "a100-sxm-80gb", "memory"),
        ("DGX A100", "a100-sxm-80gb", "memory"),
        ("V100 16GB", "v100-sxm2-16gb", "form"),
        ("H100", "h100-sxm-80gb", "form or memory"),
        ("H100 SXM 96GB (500 W cap)", "h100-sxm-80gb", "500 W"),
        ("H800", "h800-sxm-80gb", "form or memory"),
        ("H200", "h200-sxm-141gb", "form or memory"),
        ("GH200", "gh200-96gb", "memory"),
        ("B200", "b200-sxm-180gb", "form or memory"),
        ("GB200", "gb200-186gb", "per GPU, not per superchip"),
        ("MI250", "mi250-128gb", "one MI250 module = 2 GCDs"),
        ("MI250X", "mi250x-128gb", "one MI250X module = 2 GCDs"),
        ("MI250X 128GB", "mi250x-128gb", "one MI250X module = 2 GCDs"),
        ("AMD Instinct MI250X OAM", "mi250x-128gb", "one MI250X module = 2 GCDs"),
        ("MI250X 64GB", "mi250x-gcd-64gb", "half a module"),
        ("TPU v3", "tpu-v3", "chips of 2 cores"),
        ("TPU v4", "tpu-v4", "chips of 2 cores"),
        ("TPUv4", "tpu-v4", "chips of 2 cores"),
        ("Trainium", "trainium1", "generation"),
    ],
)
def test_a_short_name_says_what_was_assumed(name, key, said):
    found = accelerator_named(name)
    assert found.spec.key == key
    assert found.assumed.startswith(f"{name} read as {plain_name(found.spec)}: ")
    assert said in found.assumed


@pytest.mark.parametrize(
    ("name", "key", "count"),
    [
        ("p5.48xlarge", "h100-sxm-80gb", 8),
        ("aws:p4d.24xlarge", "a100-sxm-40gb", 8),
        ("a3-highgpu-8g", "h100-sxm-80gb", 8),
        ("Standard_ND96isr_H100_v5", "h100-sxm-80gb", 8),
        ("ND96isr H100 v5", "h100-sxm-80gb", 8),
        ("g4-standard-6", "rtx-pro-6000-96gb", Decimal("0.125")),
    ],
)
def test_an_instance_type_names_its_accelerator_and_how_many_it_holds(name, key, count):
    found = accelerator_named(name)
    assert found.spec.key == key
    assert found.instance_type.accelerator_count == count
    assert f"holds {count} of them" in found.assumed


@pytest.mark.parametrize("name", ["h100 sxm 80gb", "  H100  SXM 80 GB ", "H100-SXM-80GB"])
def test_case_and_spacing_do_not_matter(name):
    assert accelerator_named(name).spec.key == "h100-sxm-80gb"


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("H1000", "H100"),
        ("L40", "L40S"),
        ("A100 64GB", "A100"),
        ("TPU v9", "TPU v"),
        ("p5.49xlarge", "p5.48xlarge"),
    ],
)
def test_an_unknown_name_is_refused_with_near_ones_and_the_way_to_add_a_row(name, near):
    with pytest.raises(LookupError) as refused:
        accelerator_named(name)
    message = str(refused.value)
    assert repr(name) in message
    assert near in message
    assert "configuration" in message


@pytest.mark.parametrize("name", ["", "   ", "GPU", "%(text)s", "100%"])
def test_a_name_of_nothing_is_refused(name):
    with pytest.raises(LookupError, match="no accelerator"):
        accelerator_named(name)


def test_every_alias_leads_to_its_row():
    for alias, key, _reason in accelerator_aliases():
        assert accelerator_named(alias).spec.key == key


@pytest.mark.django_db
def test_own_rows_win_by_key_and_by_name():
    mine = {"key": "my-h100", "name": "H100", "tdp_w": 500, "source": "our racks"}
    override = {"key": "a100-sxm-80gb", "name": "A100 capped", "tdp_w": 350, "source": "our racks"}
    type_ = {
        "provider": "our-cloud",
        "name": "big.1",
        "accelerator": "my-h100",
        "accelerator_count": 4,
        "source": "our list",
    }
    apply(operator(), {"accelerators": [mine, override], "instance_types": [type_]})
    of = organisation().pk
    assert accelerator_named("h100", of).spec.tdp_w == 500
    assert accelerator_named("A100", of).spec.tdp_w == 350
    assert accelerator_named("A100 SXM 80GB", of).spec.tdp_w == 350
    assert accelerator_named("big.1", of).spec.key == "my-h100"
    assert accelerator_named("h100").spec.tdp_w == 700

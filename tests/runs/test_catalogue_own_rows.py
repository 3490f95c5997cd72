"""Own rows: checked for units and for sparse peaks in the dense place, audited, in the document."""

import pytest

from audit.selectors import trail
from runs.catalogue import shipped_accelerators
from runs.catalogue_rows import RowError
from runs.configuration import apply, dump
from runs.own_catalogue import (
    remove_accelerator,
    remove_instance_type,
    save_accelerator,
    save_instance_type,
)
from runs.selectors import (
    accelerator,
    accelerator_named,
    instance_type,
    instance_types,
    own_instance_types,
)
from runs.services import RunsError, ensure_devices, ensure_site
from tests.builders import organisation
from tests.carbon.builders import operator

pytestmark = pytest.mark.django_db


def chip(**changes):
    return {
        "key": "my-chip",
        "name": "My chip",
        "peak_dense_flop_per_s": {"bf16": 4e14},
        "tdp_w": 450,
        "source": "design document 12",
        **changes,
    }


def machine(**changes):
    return {
        "provider": "our-cloud",
        "name": "Big.8",
        "accelerator": "h100-sxm-80gb",
        "accelerator_count": 8,
        "source": "our price list",
        **changes,
    }


def actions():
    return [entry.action for entry in trail(organisation().pk, limit=10)]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"peak_dense_flop_per_s": {"bf16": 989.4}}, "989.4 TFLOP/s, that is 9.894e.14 FLOP/s"),
        ({"peak_dense_flop_per_s": {"bf16": 9.894e26}}, "TFLOP/s"),
        ({"peak_dense_flop_per_s": {"bf17": 1e15}}, "bf16"),
        ({"peak_sparse_flop_per_s": {"bf16": 2e14}}, "sparse peak .200 TFLOP/s. must be above"),
        ({"peak_sparse_flop_per_s": {"bf16": 4e14}}, "must be above the dense one"),
        ({"peak_sparse_flop_per_s": {"fp8": 8e14}}, "needs the dense one"),
        ({"int8_sparse_op_per_s": 8e14}, "int8_sparse_op_per_s: A sparse peak needs"),
        ({"tdp_w": 0.45}, "0.45 kW is 450 W"),
        ({"memory_gb": 81920}, "81920 MB is 81.92 GB"),
        ({"memory_bandwidth_gb_per_s": 3.35}, "3.35 TB/s is 3350 GB/s"),
        ({"source": "  "}, "source"),
        ({"source_date": "last year"}, "source_date"),
        ({"key": "new"}, "address"),
        ({"key": "My Chip"}, "key"),
        ({"tdp": 450}, "tdp"),
        ({"tdp_w": float("nan")}, "tdp_w"),
        ({"accelerators_per_node": 0}, "accelerators_per_node"),
    ],
)
def test_a_row_that_cannot_be_true_is_refused_with_field_and_unit(changes, said):
    with pytest.raises(RowError, match=said):
        save_accelerator(operator(), chip(**changes))
    assert actions() == []


def test_an_own_row_is_audited_once_and_a_repeat_changes_nothing():
    assert save_accelerator(operator(), chip()).is_new
    assert not save_accelerator(operator(), chip()).is_new
    save_accelerator(operator(), chip(tdp_w=500))
    assert actions() == ["catalogue.changed", "catalogue.added"]


def test_without_its_own_row_the_shipped_one_holds_again():
    save_accelerator(operator(), chip(key="h100-sxm-80gb", tdp_w=500))
    of = organisation().pk
    assert accelerator("h100-sxm-80gb", of).tdp_w == 500
    assert accelerator("h100-sxm-80gb", of).family == "H100"
    remove_accelerator(operator(), "h100-sxm-80gb")
    assert accelerator("h100-sxm-80gb", of) == shipped_accelerators()["h100-sxm-80gb"]
    assert actions()[0] == "catalogue.removed"


def test_a_row_that_devices_name_cannot_go():
    save_accelerator(operator(), chip())
    site = ensure_site(operator(), slug="hall-1")
    ensure_devices(site, [("GPU-1", "", "My chip")])
    apply(operator(), {"devices": [{"uuid": "GPU-1", "site": "hall-1", "accelerator": "my-chip"}]})
    with pytest.raises(RowError, match="1 devices still name"):
        remove_accelerator(operator(), "my-chip")
    assert accelerator("my-chip", organisation().pk).tdp_w == 450


def test_a_row_of_another_organisation_is_not_there():
    save_accelerator(operator(), chip())
    with pytest.raises(LookupError):
        accelerator("my-chip", organisation("other").pk)
    with pytest.raises(LookupError):
        accelerator_named("My chip", organisation("other").pk)


def test_an_own_instance_type_overrides_and_extends_the_shipped_ones():
    save_instance_type(operator(), machine())
    save_instance_type(
        operator(), machine(provider="aws", name="p5.48xlarge", accelerator_count="4")
    )
    of = organisation().pk
    assert instance_type("our-cloud", "big.8", of).accelerator_count == 8
    assert instance_type("aws", "p5.48xlarge", of).accelerator_count == 4
    assert instance_type("aws", "p5.48xlarge").accelerator_count == 8
    assert len(instance_types(of)) == len(instance_types()) + 1


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"accelerator": "nothing"}, "nothing"),
        ({"accelerator_count": 0}, "accelerator_count"),
        ({"accelerator_count": "0.12345"}, "accelerator_count"),
        ({"source": ""}, "source"),
        ({"provider": "Our Cloud"}, "provider"),
    ],
)
def test_an_instance_type_that_cannot_be_true_is_refused(changes, said):
    with pytest.raises(RowError, match=said):
        save_instance_type(operator(), machine(**changes))


def test_an_own_instance_type_can_go():
    save_instance_type(operator(), machine())
    (entry_id,) = own_instance_types(organisation().pk)
    remove_instance_type(operator(), entry_id)
    assert instance_type("our-cloud", "big.8", organisation().pk) is None
    assert actions() == ["instance_type.removed", "instance_type.added"]


def test_own_rows_are_part_of_the_configuration_both_ways():
    document = {
        "accelerators": [chip(accelerators_per_node=8, source_date="2026-01")],
        "instance_types": [machine(accelerator="my-chip", accelerator_count=0.5)],
    }
    apply(operator(), document)
    dumped = dump(organisation().pk)
    assert dumped["accelerators"] == document["accelerators"]
    assert dumped["instance_types"] == [machine(accelerator="my-chip", accelerator_count="0.5")]
    before = actions()
    apply(operator(), dumped)
    assert actions() == before


@pytest.mark.parametrize(
    ("section", "row", "said"),
    [
        ("accelerators", chip(tdp_w=0.45), r"accelerators\[my-chip\].tdp_w: 0.45 W is too little"),
        ("instance_types", machine(accelerator="x"), r"instance_types\[Big.8\].accelerator"),
    ],
)
def test_the_document_names_the_refused_entry(section, row, said):
    with pytest.raises(RunsError, match=said):
        apply(operator(), {section: [row]})

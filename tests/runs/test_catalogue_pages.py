"""The pages of the catalogue: all figures, own rows by form, each refusal at its field."""

import pytest
from django.urls import reverse

from audit.selectors import trail
from projects.records import OrganisationRole
from runs.catalogue import shipped_accelerators
from runs.forms import AcceleratorForm, accelerator_initial
from runs.own_catalogue import save_accelerator, save_instance_type
from runs.selectors import accelerator, instance_type, own_instance_types
from tests.builders import organisation, person, signed_in
from tests.carbon.builders import operator
from tests.runs.test_catalogue_own_rows import chip, machine

pytestmark = pytest.mark.django_db

FORM = {
    "name": "Own H100",
    "key": "own-h100",
    "vendor": "NVIDIA",
    "dense_bf16": "989.4",
    "sparse_bf16": "1978.9",
    "tdp_w": "500",
    "accelerators_per_node": "8",
    "source": "our racks",
    "source_date": "2026-03",
}


@pytest.fixture
def admin():
    return signed_in(person("ada", role=OrganisationRole.ADMIN))


@pytest.fixture
def member():
    return signed_in(person("bob"))


def page(client, name, *args, query=""):
    response = client.get(reverse(name, args=args) + query)
    assert response.status_code == 200
    return response.content.decode()


def post(client, name, data, *args):
    return client.post(reverse(name, args=args), data)


def test_the_list_shows_every_accelerator_with_dense_and_sparse_columns_apart(member):
    shown = page(member, "catalogue")
    for key in shipped_accelerators():
        assert f'href="/catalogue/{key}/"' in shown
    assert "Dense peak (TFLOP/s)" in shown
    assert "Peak with sparsity (TFLOP/s)" in shown
    assert "white paper" in shown


@pytest.mark.parametrize(
    ("query", "here", "gone"),
    [
        ("?q=h100+nvl", "h100-nvl-94gb", "a100-sxm-80gb"),
        ("?vendor=AMD", "mi300x-192gb", "h100-sxm-80gb"),
        ("?q=80gb&vendor=NVIDIA", "a100-sxm-80gb", "tpu-v4"),
    ],
)
def test_a_text_and_a_vendor_narrow_the_list(member, query, here, gone):
    shown = page(member, "catalogue", query=query)
    assert f'href="/catalogue/{here}/"' in shown
    assert f'href="/catalogue/{gone}/"' not in shown


def test_a_short_name_or_a_machine_is_explained_above_the_list(member):
    assert "form or memory" in page(member, "catalogue", query="?q=A100")
    assert "holds 8 of them" in page(member, "catalogue", query="?q=p5.48xlarge")


def test_a_search_without_a_match_says_so(member):
    assert "No accelerator of the catalogue" in page(member, "catalogue", query="?q=%3Cabacus%3E")


def test_a_page_shows_figures_notes_sources_and_the_machines_that_hold_it(member):
    shown = page(member, "catalogue_accelerator", "h100-sxm-80gb")
    for text in (
        "989.4",
        "1,978.9",
        "3,350",
        "NVLink 4",
        "p5.48xlarge",
        "Caps of 500 W",
        "2022-03",
    ):
        assert text in shown
    assert "Override" not in shown


def test_an_unknown_accelerator_is_not_found(member):
    assert member.get("/catalogue/nothing/").status_code == 404


def test_an_own_accelerator_is_made_by_form_and_badged(admin):
    response = post(admin, "catalogue_accelerator_new", FORM)
    assert response["Location"] == "/catalogue/own-h100/"
    spec = accelerator("own-h100", organisation().pk)
    assert spec.peak_dense_flop_per_s == {"bf16": 989.4e12}
    assert spec.peak_sparse_flop_per_s == {"bf16": 1978.9e12}
    assert (spec.tdp_w, spec.max_power_w, spec.accelerators_per_node) == (500, 500, 8)
    assert "badge-info" in page(admin, "catalogue", query="?q=own")
    assert trail(organisation().pk)[0].action == "catalogue.added"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"dense_bf16": "989400000000000"}, "if it is FLOP/s, write 989.4"),
        ({"dense_bf16": "0.09"}, "if it is PFLOP/s, write 90"),
        ({"sparse_bf16": "494.7"}, "must be above the dense one (989.4 TFLOP/s)"),
        ({"sparse_fp8": "3957.8"}, "needs the dense one"),
        ({"sparse_int8": "3957.8"}, "needs the dense one"),
        ({"tdp_w": "0.7"}, "0.7 kW is 700 W"),
        ({"memory_gb": "81920"}, "81920 MB is 81.92 GB"),
        ({"source": ""}, "This field is required"),
        ({"source_date": ""}, "This field is required"),
        ({"key": "new"}, "address of the catalogue"),
    ],
)
def test_a_form_that_cannot_be_true_is_refused_with_the_unit(admin, changes, said):
    response = post(admin, "catalogue_accelerator_new", {**FORM, **changes})
    assert response.status_code == 200
    assert said in response.content.decode()
    with pytest.raises(LookupError):
        accelerator("own-h100", organisation().pk)


def test_an_override_says_so_shows_what_differs_and_can_go(admin):
    edit = page(admin, "catalogue_accelerator_edit", "h100-sxm-80gb")
    assert "There is a shipped row of this key" in edit
    assert 'value="989.4"' in edit
    response = post(admin, "catalogue_accelerator_edit", FORM, "h100-sxm-80gb")
    assert response["Location"] == "/catalogue/h100-sxm-80gb/"
    shown = page(admin, "catalogue_accelerator", "h100-sxm-80gb")
    assert "overrides the shipped one" in shown
    assert "TDP (W)" in shown
    post(admin, "catalogue_accelerator_remove", {}, "h100-sxm-80gb")
    assert accelerator("h100-sxm-80gb", organisation().pk).tdp_w == 700
    assert "overrides" not in page(admin, "catalogue_accelerator", "h100-sxm-80gb")


def test_the_form_gives_back_what_it_was_given():
    spec = shipped_accelerators()["b200-sxm-180gb"]
    form = AcceleratorForm(accelerator_initial(spec))
    assert form.is_valid(), form.errors
    save_accelerator(operator(), form.document())
    assert accelerator(spec.key, organisation().pk) == spec


def test_a_shipped_row_cannot_be_removed(admin):
    assert post(admin, "catalogue_accelerator_remove", {}, "a100-sxm-80gb").status_code == 404


def test_an_own_row_in_use_stays_and_says_why(admin):
    save_accelerator(operator(), chip())
    save_instance_type(operator(), machine(accelerator="my-chip"))
    response = admin.post("/catalogue/my-chip/remove/", follow=True)
    assert "1 instance types still name this accelerator" in response.content.decode()


def test_an_own_instance_type_is_made_changed_and_removed_by_form(admin):
    data = {
        "provider": "our-cloud",
        "name": "Big.8",
        "accelerator": "h100-sxm-80gb",
        "accelerator_count": "8",
        "source": "our list",
        "source_date": "2026",
    }
    assert post(admin, "catalogue_instance_type_new", data).status_code == 302
    of = organisation().pk
    (entry_id,) = own_instance_types(of)
    shown = page(admin, "catalogue_accelerator", "h100-sxm-80gb")
    assert "Big.8" in shown
    changed = {**data, "accelerator_count": "4", "name": "ignored"}
    assert post(admin, "catalogue_instance_type_edit", changed, entry_id).status_code == 302
    assert instance_type("our-cloud", "big.8", of).accelerator_count == 4
    assert "own" in page(admin, "catalogue_instance_types", query="?provider=our-cloud")
    assert post(admin, "catalogue_instance_type_remove", {}, entry_id).status_code == 302
    assert own_instance_types(of) == {}


def test_the_list_of_instance_types_is_narrowed_by_name_and_provider(member):
    shown = page(member, "catalogue_instance_types", query="?q=p5&provider=aws")
    assert "p5.48xlarge" in shown
    assert "a3-highgpu-8g" not in shown


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("catalogue_accelerator_new", []),
        ("catalogue_accelerator_edit", ["h100-sxm-80gb"]),
        ("catalogue_accelerator_remove", ["h100-sxm-80gb"]),
        ("catalogue_instance_type_new", []),
    ],
)
@pytest.mark.parametrize("role", [OrganisationRole.MEMBER, OrganisationRole.AUDITOR])
def test_only_administrators_change_the_catalogue(name, args, role):
    client = signed_in(person("eve", role=role))
    assert client.post(reverse(name, args=args), FORM).status_code == 403


def test_the_pages_need_few_queries(member, django_assert_max_num_queries):
    for address in ("/catalogue/", "/catalogue/h100-sxm-80gb/", "/catalogue/instance-types/"):
        with django_assert_max_num_queries(12):
            member.get(address)

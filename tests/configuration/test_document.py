"""Configuration is a file too: what it says comes true, all of it or nothing, and twice is once."""

import io
import json
from pathlib import Path

import pytest
import yaml
from django.conf import settings
from django.core.management import CommandError, call_command

from costwatch.configuration import (
    ConfigurationError,
    apply_document,
    changes_between,
    document_text,
    dump_document,
    read_document,
)
from projects.access import system_actor
from projects.models import Project
from runs.models import Assignment, Device, Site
from tests import builders

pytestmark = pytest.mark.django_db

EXAMPLE = """
version: 1
projects:
  - slug: moe
    name: A project
    starts_on: 2026-09-14
sites:
  - slug: oregon
    name: Oregon
    provider: aws
    region: us-west-2
    country: USA
    state: US-OR
devices:
  - {uuid: GPU-1, site: oregon, node: node-1, model: NVIDIA H100 80GB HBM3}
  - {uuid: GPU-2, site: oregon, node: node-1, model: NVIDIA H100 80GB HBM3}
runs:
  - {project: moe, slug: main, accelerator: h100-sxm-80gb, accelerator_count: 2}
assignments:
  - {project: moe, site: oregon, run: main, devices: all, start: 2026-09-14T00:00:00Z}
"""


@pytest.fixture
def actor():
    return system_actor(builders.organisation().pk, "test")


def apply(actor, text, *, dry_run=False):
    return apply_document(actor, read_document(text), dry_run=dry_run)


def test_a_document_comes_true(actor):
    changes = apply(actor, EXAMPLE)
    assert Project.objects.get(slug="moe").name == "A project"
    assert Site.objects.get(slug="oregon").region == "us-west-2"
    assert Device.objects.count() == Assignment.objects.count() == 2
    assert "+ projects[moe]" in changes
    assert "+ devices[GPU-2]" in changes


def test_applying_twice_changes_nothing(actor):
    apply(actor, EXAMPLE)
    assert apply(actor, EXAMPLE) == []


def test_what_was_dumped_applies_without_a_change(actor):
    apply(actor, EXAMPLE)
    assert apply(actor, document_text(dump_document(actor.organisation_id))) == []


def test_a_dump_builds_the_same_organisation_from_nothing(actor):
    apply(actor, EXAMPLE)
    before = dump_document(actor.organisation_id)
    Assignment.objects.all().delete()
    Device.objects.all().delete()
    apply(actor, document_text(before))
    assert dump_document(actor.organisation_id) == before


def test_a_dry_run_says_what_would_change_and_changes_nothing(actor):
    changes = apply(actor, EXAMPLE, dry_run=True)
    assert "+ sites[oregon]" in changes
    assert not Project.objects.filter(slug="moe").exists()


def test_a_change_names_the_entry_the_old_and_the_new_value(actor):
    apply(actor, EXAMPLE)
    changes = apply(actor, "projects: [{slug: moe, name: Renamed, starts_on: 2026-09-14}]")
    assert changes == ['~ projects[moe].name: "A project" -> "Renamed"']


def test_a_problem_anywhere_changes_nothing_anywhere(actor):
    broken = EXAMPLE + "  - {project: moe, site: nowhere, start: 2026-09-14T00:00:00Z}\n"
    with pytest.raises(ConfigurationError, match="nowhere"):
        apply(actor, broken)
    assert not Project.objects.filter(slug="moe").exists()
    assert not Site.objects.filter(slug="oregon").exists()


def test_what_a_document_does_not_name_stays(actor):
    apply(actor, EXAMPLE)
    apply(actor, "sites: [{slug: oregon, name: Oregon, provider: aws, region: us-west-2, "
                 "country: USA, state: US-OR}]")  # fmt: skip
    assert Project.objects.filter(slug="moe").exists()
    assert Device.objects.count() == 2


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("projetcs: []", "projetcs"),
        ("projects: [{slug: moe, nmae: x}]", "nmae"),
        ("sites: [{slug: oregon, puee: 1.2}]", "puee"),
        ("devices: [{uuid: GPU-1, site: oregon, modle: x}]", "modle"),
    ],
)
def test_an_unknown_key_is_refused_by_name(actor, text, named):
    with pytest.raises(ConfigurationError, match=named):
        apply(actor, text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("version: 7", "version"),
        ("- a list", "list"),
        ("projects: [", "YAML"),
        ("projects: []\nprojects: []", "twice"),
        ("projects: [{slug: moe, starts_on: soon}]", "starts_on"),
        ("projects: [{slug: moe, members: [{username: nobody, role: owner}]}]", "nobody"),
        ("organisation: {slug: another, name: Another}", "another"),
    ],
)
def test_a_refusal_says_where_and_why(actor, text, said):
    with pytest.raises(ConfigurationError, match=said):
        apply(actor, text)


def test_a_projects_currency_cannot_change(actor):
    apply(actor, "projects: [{slug: moe, currency: USD}]")
    with pytest.raises(ConfigurationError, match="currency"):
        apply(actor, "projects: [{slug: moe, currency: EUR}]")


def test_changes_of_a_list_are_told_entry_by_entry():
    old = {"sites": [{"slug": "a", "name": "A"}, {"slug": "b", "name": "B"}]}
    new = {"sites": [{"slug": "b", "name": "Bee"}, {"slug": "c", "name": "C"}]}
    assert changes_between(old, new) == [
        "- sites[a]",
        '~ sites[b].name: "B" -> "Bee"',
        "+ sites[c]",
    ]


def test_the_commands_read_and_write_the_same_document(actor, tmp_path: Path):
    file = tmp_path / "costwatch.yaml"
    file.write_text(EXAMPLE, encoding="utf-8")
    said = io.StringIO()
    call_command("apply", str(file), json=True, stdout=said)
    answer = json.loads(said.getvalue())
    assert answer["dry_run"] is False
    assert "+ projects[moe]" in answer["changes"]
    dumped = io.StringIO()
    call_command("dump", stdout=dumped)
    assert yaml.safe_load(dumped.getvalue())["projects"][0]["slug"] == "moe"


def test_a_refused_document_ends_the_command_with_the_reason(tmp_path: Path):
    file = tmp_path / "costwatch.yaml"
    file.write_text("projetcs: []", encoding="utf-8")
    with pytest.raises(CommandError, match=r"projetcs.*Nothing was changed"):
        call_command("apply", str(file))
    with pytest.raises(CommandError, match="cannot be read"):
        call_command("apply", str(tmp_path / "absent.yaml"))


def test_a_command_for_no_organisation_says_which_there_are(actor):
    with pytest.raises(CommandError, match="no organisation 'nobody'; there are: "):
        call_command("dump", organisation="nobody")


def test_the_documented_example_applies(actor):
    page = (settings.BASE_DIR / "docs/configuration.md").read_text(encoding="utf-8")
    example = page.partition("```yaml\n")[2].partition("```")[0]
    builders.person("ada")
    assert apply(actor, example) != []
    assert apply(actor, example) == []

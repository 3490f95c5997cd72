"""Saved views, annotations and comments: whose they are, who deletes them, what the trail keeps."""

from datetime import date

import pytest
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import Http404

from audit.models import AuditEntry
from projects.models import Project, User
from projects.records import Actor, OrganisationRole, Role
from reports.note_selectors import annotations_of, comments_of, views_of
from reports.services import (
    Subject,
    ViewWish,
    annotate,
    comment,
    delete_annotation,
    delete_comment,
    delete_view,
    rename_view,
    save_view,
)
from tests import builders

pytestmark = pytest.mark.django_db
DAY = date(2026, 5, 4)
HOME = ViewWish(name="mine", path="/", query="a=1")


def acting(user: User) -> Actor:
    return builders.actor(user)


@pytest.fixture
def alice() -> User:
    return builders.person("alice")


@pytest.fixture
def bob() -> User:
    return builders.person("bob")


@pytest.fixture
def moe(alice: User, bob: User) -> Project:
    """Alice owns it, Bob analyses it."""
    return builders.project("moe", members=[(alice, Role.OWNER), (bob, Role.ANALYST)])


def actions() -> list[str]:
    return list(AuditEntry.objects.order_by("pk").values_list("action", flat=True))


def test_a_view_is_its_owners_until_it_is_shared(alice, bob):
    private = save_view(acting(alice), HOME)

    assert list(views_of(acting(alice), "/")) == [private]
    assert list(views_of(acting(bob), "/")) == []
    with pytest.raises(Http404):
        delete_view(acting(bob), private.pk)

    rename_view(acting(alice), private.pk, name="ours", is_shared=True)
    assert [one.name for one in views_of(acting(bob), "/")] == ["ours"]
    with pytest.raises(PermissionDenied):
        delete_view(acting(bob), private.pk)
    with pytest.raises(PermissionDenied):
        rename_view(acting(bob), private.pk, name="bob's", is_shared=False)
    assert delete_view(acting(alice), private.pk) == "/"
    assert actions()[-3:] == ["view.save", "view.rename", "view.delete"]


def test_a_shared_view_stays_in_its_organisation_and_its_administrator_may_delete_it(alice):
    shared = save_view(acting(alice), ViewWish(name="all", path="/", is_shared=True))
    stranger = builders.person(
        "eve", role=OrganisationRole.ADMIN, of=builders.organisation("other")
    )
    admin = builders.person("root", role=OrganisationRole.ADMIN)

    assert not views_of(acting(stranger), "/").exists()
    with pytest.raises(Http404):
        delete_view(acting(stranger), shared.pk)
    delete_view(acting(admin), shared.pk)
    assert not views_of(acting(alice), "/").exists()


def test_saving_under_a_known_name_overwrites_and_renaming_onto_one_is_refused(alice):
    save_view(acting(alice), HOME)
    again = save_view(acting(alice), ViewWish(name=" mine ", path="/", query="a=2"))
    other = save_view(acting(alice), ViewWish(name="other", path="/"))

    assert [(one.name, one.query) for one in views_of(acting(alice), "/")] == [
        ("mine", "a=2"),
        ("other", ""),
    ]
    with pytest.raises(ValidationError):
        rename_view(acting(alice), other.pk, name=again.name, is_shared=False)


@pytest.mark.parametrize("path", ["https://example.org/", "//example.org", "/nowhere/", ""])
def test_a_view_leads_to_no_other_place_than_a_page_of_ours(alice, path):
    with pytest.raises(ValidationError):
        save_view(acting(alice), ViewWish(name="x", path=path))


def test_a_token_saves_no_view(alice):
    with pytest.raises(PermissionDenied):
        save_view(Actor(organisation_id=alice.organisation_id, label="a token"), HOME)


def test_an_annotation_is_an_analysts_and_its_author_or_an_owner_deletes_it(alice, bob, moe):
    viewer = builders.person("vera")
    moe.memberships.create(user=viewer, role=Role.VIEWER)
    with pytest.raises(PermissionDenied):
        annotate(acting(viewer), "moe", day=DAY, text="a restart")
    mine = annotate(acting(bob), "moe", day=DAY, text=" a\nrestart ")
    owners = annotate(acting(alice), "moe", day=DAY, text="price change")

    assert [one.text for one in annotations_of(moe.pk)] == ["a restart", "price change"]
    assert not annotations_of(moe.pk, end_on=DAY).exists()
    with pytest.raises(PermissionDenied):
        delete_annotation(acting(bob), owners.pk)
    delete_annotation(acting(alice), mine.pk)
    assert [one.text for one in annotations_of(moe.pk, start_on=DAY)] == ["price change"]
    with pytest.raises(Http404):
        delete_annotation(acting(alice), mine.pk)
    assert actions()[-3:] == ["annotation.add", "annotation.add", "annotation.delete"]


def test_a_comment_is_for_who_sees_the_project_and_a_stranger_finds_none(alice, bob, moe):
    stranger = builders.person("eve")
    about = Subject(kind="tile", key="cost", project_slug="moe")
    said = comment(acting(bob), about, "too dear")

    with pytest.raises(Http404):
        comment(acting(stranger), about, "me too")
    with pytest.raises(Http404):
        delete_comment(acting(stranger), said.pk)
    found = comments_of(
        moe.organisation_id, project_id=moe.pk, subject_kind="tile", subject_key="cost"
    )
    assert [one.text for one in found.all()] == ["too dear"]
    delete_comment(acting(alice), said.pk)
    assert not found.all().exists()


def test_a_comment_without_a_project_is_for_roles_of_the_whole_organisation(alice):
    auditor = builders.person("aud", role=OrganisationRole.AUDITOR)
    with pytest.raises(PermissionDenied):
        comment(acting(alice), Subject(kind="portfolio"), "hello")
    said = comment(acting(auditor), Subject(kind="portfolio"), "hello")

    with pytest.raises(Http404):
        delete_comment(acting(alice), said.pk)
    delete_comment(acting(auditor), said.pk)


@pytest.mark.parametrize("text", ["", "   ", "x" * 201, "a\x00b"])
def test_a_text_that_cannot_be_kept_is_refused(alice, moe, text):
    with pytest.raises(ValidationError):
        annotate(acting(alice), "moe", day=DAY, text=text)

"""The permission door, branch by branch, with owners, viewers and people from elsewhere."""

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.http import Http404
from django.test import RequestFactory

from projects import access
from projects.models import Project
from projects.records import Actor, OrganisationRole, Role, Scope
from tests import builders

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice():
    return builders.person("alice")


@pytest.fixture
def bob():
    return builders.person("bob")


@pytest.fixture
def charlie():
    return builders.person(
        "charlie", role=OrganisationRole.ADMIN, of=builders.organisation("other")
    )


@pytest.fixture
def moe(alice, bob) -> Project:
    return builders.project("moe", members=[(alice, Role.OWNER), (bob, Role.VIEWER)])


def token_actor(*scopes: Scope, **reach) -> Actor:
    organisation = builders.organisation()
    return Actor(
        organisation_id=organisation.pk,
        label="token",
        token_id=organisation.pk,
        scopes=frozenset(scopes),
        **reach,
    )


def test_an_owner_passes_for_every_role(alice, moe):
    for role in Role:
        assert access.project_for(builders.actor(alice), "moe", role) == moe


def test_a_viewer_reads_and_nothing_more(bob, moe):
    assert access.project_for(builders.actor(bob), "moe") == moe
    for role in (Role.ANALYST, Role.OWNER):
        with pytest.raises(PermissionDenied):
            access.project_for(builders.actor(bob), "moe", role)


def test_a_foreign_project_looks_like_none(charlie, moe):
    messages = set()
    for slug in ("moe", "no-such-project"):
        with pytest.raises(Http404) as refusal:
            access.project_for(builders.actor(charlie), slug)
        messages.add(str(refusal.value))
    assert len(messages) == 1


def test_the_same_slug_in_another_organisation_is_another_project(charlie, moe):
    theirs = builders.project("moe", of=builders.organisation("other"))
    assert access.project_for(builders.actor(charlie), "moe") == theirs


def test_a_colleague_outside_the_project_does_not_see_it(moe):
    dora = builders.person("dora")
    with pytest.raises(Http404):
        access.project_for(builders.actor(dora), "moe")


def test_an_auditor_reads_everything_and_changes_nothing(moe):
    auditor = builders.actor(builders.person("audrey", role=OrganisationRole.AUDITOR))
    assert access.project_for(auditor, "moe") == moe
    with pytest.raises(PermissionDenied):
        access.project_for(auditor, "moe", Role.ANALYST)
    access.require_organisation_role(auditor, write=False)
    with pytest.raises(PermissionDenied):
        access.require_organisation_role(auditor, write=True)
    assert access.sees_unallocated(auditor)


def test_an_administrator_owns_every_project_of_the_organisation(moe):
    admin = builders.actor(builders.person("ada", role=OrganisationRole.ADMIN))
    assert access.project_for(admin, "moe", Role.OWNER) == moe
    access.require_organisation_role(admin, write=True)


def test_a_member_has_no_organisation_wide_rights(alice):
    with pytest.raises(PermissionDenied):
        access.require_organisation_role(builders.actor(alice), write=False)
    assert not access.sees_unallocated(builders.actor(alice))


def test_an_archived_project_is_gone_from_every_door(alice, moe):
    Project.objects.update(archived_at=moe.created_at)
    with pytest.raises(Http404):
        access.project_for(builders.actor(alice), "moe")


def test_a_token_of_one_project_sees_only_that_one(moe):
    builders.project("other-project")
    actor = token_actor(Scope.READ_COSTS, token_project_id=moe.pk)
    assert list(access.projects_for(actor)) == [moe]
    assert not access.sees_unallocated(actor)


def test_a_reading_token_has_no_higher_role(moe):
    reader, manager = token_actor(Scope.READ_COSTS), token_actor(Scope.MANAGE_PROJECT)
    with pytest.raises(PermissionDenied):
        access.project_for(reader, "moe", Role.ANALYST)
    assert access.project_for(manager, "moe", Role.OWNER) == moe


def test_a_token_reaches_over_the_organisation_only_with_that_scope(moe):
    access.require_organisation_role(token_actor(Scope.ADMIN_ORG), write=True)
    for actor in (
        token_actor(Scope.READ_COSTS),
        token_actor(Scope.ADMIN_ORG, token_project_id=moe.pk),
    ):
        with pytest.raises(PermissionDenied):
            access.require_organisation_role(actor, write=False)


def test_a_scope_is_asked_of_tokens_only(alice):
    access.require_scope(builders.actor(alice), Scope.INGEST_POWER)
    access.require_scope(token_actor(Scope.INGEST_POWER), Scope.INGEST_POWER, Scope.ADMIN_ORG)
    with pytest.raises(PermissionDenied):
        access.require_scope(token_actor(Scope.READ_COSTS), Scope.INGEST_POWER)


def test_the_system_acts_with_full_rights_in_one_organisation(moe):
    actor = access.system_actor(moe.organisation_id, "manage.py demo")
    assert access.project_for(actor, "moe", Role.OWNER) == moe
    access.require_organisation_role(actor, write=True)


@pytest.mark.parametrize("who", ["nobody", "closed", "homeless"])
def test_an_actor_needs_an_open_account_of_an_organisation(who, alice):
    request = RequestFactory().get("/")
    request.user = AnonymousUser() if who == "nobody" else alice
    alice.is_active = who != "closed"
    alice.organisation_id = None if who == "homeless" else alice.organisation_id
    with pytest.raises(PermissionDenied):
        access.actor_of(request)

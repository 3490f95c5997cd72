"""People: invited by a link, given roles, taken out; every change is in the trail."""

import pytest
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import Http404
from django.test import Client

from audit.checks import verify_chain
from audit.models import AuditEntry
from projects import services
from projects.models import Membership, Project, User
from projects.records import OrganisationRole, Role
from tests import builders

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada():
    return builders.person("ada", role=OrganisationRole.ADMIN)


def test_an_invited_person_sets_a_password_once_and_signs_in(ada):
    body = {"username": "newt", "email": "newt@example.org", "organisation_role": "member"}
    page = builders.signed_in(ada).post("/people/", body)
    link = page.context["invitation_link"]
    assert link in page.content.decode()
    client = Client()
    form = client.get(link, follow=True)
    new = "a password of newt"
    client.post(form.redirect_chain[-1][0], {"new_password1": new, "new_password2": new})
    assert Client().login(username="newt", password=new)
    assert "new_password1" not in Client().get(link, follow=True).content.decode()


def test_only_administrators_invite():
    body = {"username": "newt", "email": "newt@example.org", "organisation_role": "admin"}
    for role in (OrganisationRole.MEMBER, OrganisationRole.AUDITOR):
        client = builders.signed_in(builders.person(role.value, role=role))
        assert client.post("/people/", body).status_code == 403
    assert not User.objects.filter(username="newt").exists()


def test_a_taken_name_is_said_by_the_field(ada):
    body = {"username": "ada", "email": "a@example.org", "organisation_role": "member"}
    page = builders.signed_in(ada).post("/people/", body)
    assert page.context["form"].errors["username"]


def test_the_last_administrator_stays(ada):
    actor = builders.actor(ada)
    with pytest.raises(ValidationError, match="stay administrator"):
        services.set_organisation_role(actor, user_id=ada.pk, role=OrganisationRole.MEMBER)
    with pytest.raises(ValidationError, match="stay administrator"):
        services.set_active(actor, user_id=ada.pk, active=False)
    builders.person("second", role=OrganisationRole.ADMIN)
    services.set_organisation_role(actor, user_id=ada.pk, role=OrganisationRole.MEMBER)


def test_an_owner_manages_members_and_a_viewer_does_not(ada):
    olga, vera, newt = (builders.person(name) for name in ("olga", "vera", "newt"))
    moe = builders.project("moe", members=[(olga, Role.OWNER), (vera, Role.VIEWER)])
    body = {"username": "newt", "role": "analyst"}
    assert builders.signed_in(vera).post("/projects/moe/members/", body).status_code == 403
    assert builders.signed_in(olga).post("/projects/moe/members/", body).status_code == 302
    assert Membership.objects.get(project=moe, user=newt).role == "analyst"
    builders.signed_in(olga).post(f"/projects/moe/members/{newt.pk}/remove/")
    assert not Membership.objects.filter(user=newt).exists()


def test_nobody_of_another_organisation_becomes_a_member(ada):
    builders.project("moe")
    charlie = builders.person("charlie", of=builders.organisation("other"))
    with pytest.raises(Http404):
        services.set_membership(builders.actor(ada), "moe", user_id=charlie.pk, role=Role.VIEWER)


def test_a_foreign_person_cannot_be_changed(ada):
    charlie = builders.person("charlie", of=builders.organisation("other"))
    client = builders.signed_in(ada)
    body = {"organisation_role": "admin", "active": "0"}
    assert client.post(f"/people/{charlie.pk}/role/", body).status_code == 404
    assert client.post(f"/people/{charlie.pk}/active/", body).status_code == 404


def test_members_see_only_the_teams_of_their_own_projects(ada):
    vera = builders.person("vera")
    builders.project("moe", members=[(vera, Role.VIEWER)])
    builders.project("secret-project", members=[(ada, Role.OWNER)])
    page = builders.signed_in(vera).get("/people/").content.decode()
    assert "Moe" in page
    assert "Secret-Project" not in page
    assert "ada@example.org" not in page


def test_the_page_of_people_asks_the_database_a_fixed_number_of_times(
    ada, django_assert_max_num_queries
):
    for number in range(8):
        user = builders.person(f"p{number}")
        builders.project(f"p{number}", members=[(user, Role.OWNER), (ada, Role.VIEWER)])
    client = builders.signed_in(ada)
    with django_assert_max_num_queries(10):
        client.get("/people/")


def test_a_project_is_made_on_its_page_and_its_maker_owns_it(ada):
    body = {"name": "MoE 10B", "slug": "moe-10b", "currency": "USD", "starts_on": "2026-10-01"}
    response = builders.signed_in(ada).post("/projects/new/", body)
    assert response["Location"] == "/projects/moe-10b/"
    assert Membership.objects.get(user=ada).role == Role.OWNER


def test_a_project_that_cannot_be_made_is_explained(ada):
    builders.project("moe")
    client = builders.signed_in(ada)
    taken = {"name": "X", "slug": "moe", "currency": "USD"}
    for body in (taken, taken | {"slug": "new"}, taken | {"currency": "usd"}, {"slug": "a b"}):
        page = client.post("/projects/new/", body)
        assert page.status_code == 200
        assert page.context["form"].errors
    assert Project.objects.count() == 1


def test_a_member_makes_no_project():
    client = builders.signed_in(builders.person())
    assert client.get("/projects/new/").status_code == 403
    with pytest.raises(PermissionDenied):
        services.create_project(builders.actor(User.objects.get()), slug="moe", name="MoE")


def test_every_change_is_in_the_trail_with_before_and_after(ada):
    actor = builders.actor(ada)
    vera = builders.person("vera")
    moe = services.create_project(actor, slug="moe", name="MoE")
    services.update_project(actor, "moe", name="MoE 10B", description="", starts_on=None)
    services.set_membership(actor, "moe", user_id=vera.pk, role=Role.VIEWER)
    services.set_membership(actor, "moe", user_id=vera.pk, role=Role.ANALYST)
    services.remove_membership(actor, "moe", user_id=vera.pk)
    services.set_organisation_role(actor, user_id=vera.pk, role=OrganisationRole.AUDITOR)
    services.set_active(actor, user_id=vera.pk, active=False)
    services.archive_project(actor, "moe", reason="finished")
    entries = list(AuditEntry.objects.filter(organisation_id=moe.organisation_id))
    assert [entry.action for entry in entries] == [
        "project.create",
        "project.update",
        "membership.set",
        "membership.set",
        "membership.remove",
        "person.role",
        "person.active",
        "project.archive",
    ]
    assert entries[3].before == {"user": "vera", "role": "viewer"}
    assert entries[3].after == {"user": "vera", "role": "analyst"}
    assert entries[-1].reason == "finished"
    assert {entry.user_id for entry in entries} == {ada.pk}
    assert verify_chain(moe.organisation_id) == ()


def test_the_trail_is_read_by_organisation_wide_roles_only(ada):
    services.create_project(builders.actor(ada), slug="moe", name="MoE")
    auditor = builders.person("audrey", role=OrganisationRole.AUDITOR)
    page = builders.signed_in(auditor).get("/people/trail/?verify=1").content.decode()
    assert "project.create" in page
    assert "All seals fit" in page
    assert builders.signed_in(builders.person("vera")).get("/people/trail/").status_code == 403
    outsider = builders.person(
        "charlie", role=OrganisationRole.ADMIN, of=builders.organisation("other")
    )
    assert (
        "project.create" not in builders.signed_in(outsider).get("/people/trail/").content.decode()
    )


@pytest.mark.parametrize("before", ["-1", "abc", "9" * 30, "１"])
def test_a_bad_page_of_the_trail_is_a_bad_request(ada, before):
    response = builders.signed_in(ada).get("/people/trail/", {"before": before})
    assert response.status_code == 400

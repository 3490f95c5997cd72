"""Tokens: shown once, kept as a hash, limited in scope, reach and time."""

from datetime import timedelta
from uuid import uuid4

import pytest
from django.core.exceptions import PermissionDenied, ValidationError
from django.core.management import CommandError, call_command
from django.http import Http404
from django.utils import timezone

from audit.models import AuditEntry
from projects import services, tokens
from projects.models import ApiToken
from projects.records import OrganisationRole, Role, Scope, TokenReach
from tests import builders

pytestmark = pytest.mark.django_db
PROJECTS = "/api/v1/projects"
EVERYWHERE = TokenReach()


def make(actor, *scopes, days=30, reach=EVERYWHERE):
    return services.create_token(actor, name="t", scopes=scopes, days=days, reach=reach)


@pytest.fixture
def admin():
    return builders.actor(builders.person("ada", role=OrganisationRole.ADMIN))


def test_a_token_opens_the_door_and_is_stored_only_as_a_hash(admin):
    made = make(admin, Scope.READ_COSTS)
    assert made.secret.startswith(f"cw_api_{made.token_id.hex}_")
    assert builders.with_token(made.secret).get(PROJECTS).status_code == 200
    stored = ApiToken.objects.values().get()
    assert made.secret.split("_", 3)[3] not in str(stored)
    assert stored["secret_hash"] == tokens.hash_text(made.secret)


def test_the_pepper_is_part_of_the_hash(admin, settings):
    made = make(admin, Scope.READ_COSTS)
    settings.TOKEN_PEPPER = "another pepper"
    assert builders.with_token(made.secret).get(PROJECTS).status_code == 401


def refused(response):
    return response.status_code == 401 and response.json()["code"] == "authentication_failed"


@pytest.mark.parametrize(
    "text",
    ["", "x", "cw_api_1_2", "cw_api_" + "0" * 32 + "_secret", "cw_api_" + "z" * 32 + "_s"],
)
def test_what_is_no_token_is_refused(text):
    builders.organisation()
    assert refused(builders.with_token(text).get(PROJECTS))


def test_one_changed_character_is_refused(admin):
    secret = make(admin, Scope.READ_COSTS).secret
    changed = secret[:-1] + ("a" if secret[-1] != "a" else "b")
    assert refused(builders.with_token(changed).get(PROJECTS))


def test_a_revoked_token_is_refused_at_once(admin):
    made = make(admin, Scope.READ_COSTS)
    services.revoke_token(admin, made.token_id)
    assert refused(builders.with_token(made.secret).get(PROJECTS))


def test_an_expired_token_is_refused(admin):
    made = make(admin, Scope.READ_COSTS)
    ApiToken.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert refused(builders.with_token(made.secret).get(PROJECTS))


def test_the_token_of_a_closed_account_is_refused():
    ada = builders.person("ada", role=OrganisationRole.ADMIN)
    made = make(builders.actor(ada), Scope.READ_COSTS)
    ada.is_active = False
    ada.save()
    assert refused(builders.with_token(made.secret).get(PROJECTS))


def test_a_token_that_only_sends_reads_nothing():
    client = builders.with_token(builders.token(Scope.INGEST_POWER))
    for address in (PROJECTS, "/api/v1/tokens", "/api/v1/schema"):
        assert client.get(address).status_code == 403


def test_a_token_without_the_scope_is_refused_with_403():
    client = builders.with_token(builders.token(Scope.READ_COSTS))
    body = {"slug": "x", "name": "X"}
    assert client.post(PROJECTS, body, content_type="application/json").status_code == 403
    assert client.get("/api/v1/tokens").status_code == 403


def test_the_last_use_is_noted_once_a_minute(admin):
    client = builders.with_token(make(admin, Scope.READ_COSTS).secret)
    client.get(PROJECTS)
    first = ApiToken.objects.get().last_used_at
    client.get(PROJECTS)
    assert first is not None
    assert ApiToken.objects.get().last_used_at == first
    ApiToken.objects.update(last_used_at=timezone.now() - timedelta(minutes=2))
    client.get(PROJECTS)
    assert ApiToken.objects.get().last_used_at > first


@pytest.mark.parametrize(
    ("scope", "days", "is_allowed"),
    [
        (Scope.READ_COSTS, 90, True),
        (Scope.READ_COSTS, 91, False),
        (Scope.INGEST_POWER, 365, True),
        (Scope.INGEST_POWER, 366, False),
        (Scope.UPLOAD_BILLING, 91, False),
        (Scope.READ_COSTS, 0, False),
    ],
)
def test_every_token_expires(admin, scope, days, is_allowed):
    if is_allowed:
        make(admin, scope, days=days)
    else:
        with pytest.raises(ValidationError, match="lives 1 to"):
            make(admin, scope, days=days)


def test_nobody_hands_out_more_than_the_own_role_allows():
    owner, viewer = builders.person("olga"), builders.person("vera")
    builders.project("moe", members=[(owner, Role.OWNER), (viewer, Role.VIEWER)])
    moe = TokenReach(project_slug="moe")
    make(builders.actor(viewer), Scope.READ_COSTS, reach=moe)
    make(builders.actor(owner), Scope.MANAGE_PROJECT, Scope.INGEST_RUNS, reach=moe)
    for user, scope, reach in [
        (viewer, Scope.MANAGE_PROJECT, moe),
        (viewer, Scope.INGEST_RUNS, moe),
        (viewer, Scope.READ_COSTS, EVERYWHERE),
        (owner, Scope.READ_COSTS, EVERYWHERE),
        (owner, Scope.UPLOAD_BILLING, moe),
        (owner, Scope.INGEST_POWER, moe),
        (owner, Scope.ADMIN_ORG, moe),
    ]:
        with pytest.raises(PermissionDenied):
            make(builders.actor(user), scope, reach=reach)


def test_a_token_for_a_foreign_project_is_refused_as_unknown(admin):
    builders.project("theirs", of=builders.organisation("other"))
    with pytest.raises(Http404):
        make(admin, Scope.READ_COSTS, reach=TokenReach(project_slug="theirs"))


def test_a_foreign_token_cannot_be_revoked(admin):
    theirs = builders.person(
        "charlie", role=OrganisationRole.ADMIN, of=builders.organisation("other")
    )
    made = make(builders.actor(theirs), Scope.READ_COSTS)
    with pytest.raises(Http404):
        services.revoke_token(admin, made.token_id)


def test_making_and_revoking_are_in_the_trail_without_the_secret(admin):
    made = make(admin, Scope.READ_COSTS)
    services.revoke_token(admin, made.token_id, reason="leaked")
    entries = list(AuditEntry.objects.order_by("position"))
    assert [entry.action for entry in entries] == ["token.create", "token.revoke"]
    assert entries[1].reason == "leaked"
    secret = made.secret.split("_", 3)[3]
    assert all(secret not in str([entry.before, entry.after]) for entry in entries)


def test_leaving_a_project_ends_the_tokens_made_for_it(admin):
    vera = builders.person("vera")
    builders.project("moe", members=[(vera, Role.VIEWER)])
    made = make(builders.actor(vera), Scope.READ_COSTS, reach=TokenReach(project_slug="moe"))
    services.remove_membership(admin, "moe", user_id=vera.pk)
    assert refused(builders.with_token(made.secret).get(PROJECTS))


def test_a_lower_role_ends_the_tokens_that_it_could_not_make(admin):
    olga = builders.person("olga")
    builders.project("moe", members=[(olga, Role.OWNER)])
    reach = TokenReach(project_slug="moe")
    manages = make(builders.actor(olga), Scope.MANAGE_PROJECT, reach=reach)
    reads = make(builders.actor(olga), Scope.READ_COSTS, reach=reach)

    services.set_membership(admin, "moe", user_id=olga.pk, role=Role.VIEWER)

    assert refused(builders.with_token(manages.secret).get(PROJECTS))
    assert builders.with_token(reads.secret).get(PROJECTS).status_code == 200


def test_who_is_no_administrator_any_more_does_not_act_as_one_by_a_token(admin):
    boss = builders.person("boss", role=OrganisationRole.ADMIN)
    acts = make(builders.actor(boss), Scope.ADMIN_ORG)
    sends = make(builders.actor(boss), Scope.INGEST_POWER)

    services.set_organisation_role(admin, user_id=boss.pk, role=OrganisationRole.MEMBER)

    assert refused(builders.with_token(acts.secret).get("/api/v1/tokens"))
    assert ApiToken.objects.get(pk=sends.token_id).revoked_at is None


def test_the_page_shows_the_secret_once():
    client = builders.signed_in(builders.person("ada", role=OrganisationRole.ADMIN))
    body = {"name": "agents", "scopes": ["ingest:power"], "days": "365", "project": ""}
    page = client.post("/tokens/", body).content.decode()
    made = ApiToken.objects.get()
    assert f"cw_ingest_{made.pk.hex}_" in page
    assert f"cw_ingest_{made.pk.hex}_" not in client.get("/tokens/").content.decode()
    client.post(f"/tokens/{made.pk}/revoke/")
    assert ApiToken.objects.get().revoked_at is not None


def test_the_api_makes_and_revokes_tokens():
    client = builders.with_token(builders.token(Scope.ADMIN_ORG))
    body = {"name": "ci", "scopes": ["read:costs"], "days": 7}
    made = client.post("/api/v1/tokens", body, content_type="application/json").json()
    assert builders.with_token(made["token"]).get(PROJECTS).status_code == 200
    assert "secret" not in str(client.get("/api/v1/tokens").json())
    assert client.delete(f"/api/v1/tokens/{made['id']}").status_code == 204
    assert refused(builders.with_token(made["token"]).get(PROJECTS))


def test_a_member_sees_only_the_own_tokens_on_the_page(admin):
    make(admin, Scope.ADMIN_ORG)
    page = builders.signed_in(builders.person("vera")).get("/tokens/").content.decode()
    assert "admin:org</td>" not in page


def test_an_unknown_command_option_is_said_in_one_line(admin):
    with pytest.raises(CommandError, match="There is no project 'nothing'"):
        call_command("create_token", scope=["read:costs"], project="nothing")


def test_the_command_prints_the_token_alone_on_the_last_line(capsys):
    builders.organisation()
    call_command("create_token", "--scope", "ingest:power", "--days", "200")
    last = capsys.readouterr().out.strip().splitlines()[-1]
    assert tokens.parse(last) is not None
    assert last.startswith("cw_ingest_")


@pytest.mark.parametrize(
    "reach", [TokenReach(site_id=uuid4()), TokenReach(source_id=uuid4())], ids=["site", "source"]
)
@pytest.mark.parametrize("scope", [Scope.READ_COSTS, Scope.MANAGE_PROJECT, Scope.ADMIN_ORG])
def test_a_token_of_one_site_or_source_reaches_no_project(admin, reach, scope):
    builders.project("moe")
    client = builders.with_token(make(admin, scope, reach=reach).secret)

    assert client.get(PROJECTS).json() == []
    assert client.get(f"{PROJECTS}moe/costs").status_code == 404
    assert client.get(f"{PROJECTS}moe/energy").status_code == 404
    body = {"slug": "new-one", "name": "x"}
    assert client.post(PROJECTS, body, content_type="application/json").status_code == 403
    others = make(admin, Scope.READ_COSTS)
    assert str(others.token_id) not in client.get("/api/v1/tokens").content.decode()


def test_a_token_of_one_site_uploads_no_bill_and_one_of_a_source_sends_no_power(admin):
    upload = make(admin, Scope.UPLOAD_BILLING, reach=TokenReach(site_id=uuid4()))
    send = make(admin, Scope.INGEST_POWER, reach=TokenReach(source_id=uuid4()))

    bills = builders.with_token(upload.secret).post("/api/v1/charges/imports", {"source": "aws"})
    power = builders.with_token(send.secret).post(
        "/api/v1/power/batches", b"{}", "application/json"
    )

    assert (bills.status_code, power.status_code) == (403, 403)

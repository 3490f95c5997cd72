"""Stored credentials: sealed, never shown, never written where anybody reads."""

import io
import logging
import os
import stat
from urllib.parse import urlsplit

import pytest
import redis
from cryptography.fernet import Fernet
from django.core.exceptions import PermissionDenied, ValidationError
from django.core.management import CommandError, call_command
from django.db import connection
from django.urls import reverse

from billing.models import Source, SourceSecret
from billing.services import (
    SourceWish,
    ask_for_pull,
    ask_for_test,
    change_source,
    connect_source,
    forget_secret,
    open_secret,
    rotate_secrets,
    set_secret,
)
from costwatch.configuration import document_text, dump_document
from jobs.services import run_job
from projects.records import OrganisationRole
from projects.sealing import SealingError, key_id
from tests.billing.builders import operator
from tests.builders import actor, organisation, person, signed_in

pytestmark = pytest.mark.django_db
CANARIES = [f"canary{number}W9x7QpLm" for number in range(1, 7)]


def s3_wish(**changed) -> SourceWish:
    return SourceWish(
        **{
            "name": "aws-payer",
            "kind": "s3",
            "connection": {"bucket": "bills-of-ours", "region": "us-east-1"},
            "secret": {"access_key_id": CANARIES[0], "secret_access_key": CANARIES[1]},
            **changed,
        }
    )


@pytest.fixture
def source(db) -> Source:
    return connect_source(operator(), s3_wish())


def dump_of_the_database() -> str:
    """Every row of every table, as text."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
        tables = [name for (name,) in cursor.fetchall()]
        rows = []
        for table in tables:
            cursor.execute(f'SELECT t::text FROM "{table}" t')
            rows += [text for (text,) in cursor.fetchall()]
    assert any("billing_sourcesecret" in name for name in tables)
    return "\n".join(rows)


def dump_of_redis() -> str:
    url = os.environ["REDIS_URL"]
    is_socket = url.startswith("redis+socket://")
    path = urlsplit(url).path
    client = redis.Redis(unix_socket_path=path) if is_socket else redis.Redis.from_url(url)
    shown = []
    for key in client.scan_iter():
        kind = client.type(key)
        if kind == b"string":
            shown.append(client.get(key))
        elif kind == b"list":
            shown += client.lrange(key, 0, -1)
        elif kind == b"hash":
            shown += list(client.hgetall(key).values())
        elif kind == b"zset":
            shown += client.zrange(key, 0, -1)
        shown.append(key)
    return "\n".join(str(one) for one in shown if one is not None)


@pytest.mark.django_db(transaction=True)
def test_six_planted_credentials_are_found_nowhere(caplog, monkeypatch, settings):
    """In no table, log line, page, message of the broker, trail, job or configuration."""
    organisation()
    monkeypatch.setattr("billing.connectors.s3_client.TRIES", 1)
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.INFO, logger="django")
    admin = person("admin", role=OrganisationRole.ADMIN)
    client = signed_in(admin)
    pages = []
    posted = {
        "name": "aws-payer",
        "bill_format": "auto",
        "every_h": "6",
        "place_bucket": "bills-of-ours",
        "place_endpoint_url": "http://127.0.0.1:9",
        "place_region": "us-east-1",
        "secret_access_key_id": CANARIES[0],
        "secret_secret_access_key": CANARIES[1],
        "secret_session_token": CANARIES[2],
    }
    settings.PRIVATE_HOSTS = ["127.0.0.1"]
    pages.append(client.post(reverse("source_connect", args=["s3"]), {**posted, "name": ""}))
    pages.append(client.post(reverse("source_connect", args=["s3"]), posted))
    s3 = Source.objects.get()
    key = {
        "name": "gcp",
        "bill_format": "auto",
        "every_h": "6",
        "place_project": "moe-billing",
        "place_dataset": "billing",
        "secret_service_account_json": '{"type": "service_account", "private_key": "'
        + CANARIES[3]
        + '", "token_uri": "https://oauth2.googleapis.com/token"}',
    }
    pages.append(client.post(reverse("source_connect", args=["bigquery"]), key))
    google = Source.objects.get(name="gcp")
    set_secret(actor(admin), s3, {"access_key_id": CANARIES[4], "secret_access_key": CANARIES[5]})
    for one in (s3, google):
        run_job(ask_for_test(actor(admin), one))
        run_job(ask_for_pull(one, actor(admin)))
        for name in ("source_detail", "source_change", "source_test"):
            pages.append(client.get(reverse(name, args=[one.pk])))
    pages.append(client.get(reverse("sources")))
    call_command("rotate_secrets", new_key=True)

    read = {
        "the database": dump_of_the_database(),
        "the log": caplog.text,
        "Redis": dump_of_redis(),
        "a page": "\n".join(page.content.decode() + str(page.headers) for page in pages),
        "the configuration": document_text(dump_document(s3.organisation_id)),
        "a session": "\n".join(str(dict(client.session)) for _ in [0]),
    }
    found = [(place, one) for place, text in read.items() for one in CANARIES if one in text]
    assert found == []
    assert open_secret(s3) == {"access_key_id": CANARIES[4], "secret_access_key": CANARIES[5]}


def test_a_sealed_credential_opens_for_its_own_source_only(source):
    other = connect_source(operator(), s3_wish(name="other"))
    mine = SourceSecret.objects.get(source=source)
    SourceSecret.objects.filter(source=other).update(sealed=mine.sealed)

    assert open_secret(source)["access_key_id"] == CANARIES[0]
    with pytest.raises(SealingError, match="another source"):
        open_secret(other)


def test_a_source_without_a_credential_has_none(db):
    source = connect_source(operator(), s3_wish(secret={}))
    assert open_secret(source) is None
    assert not forget_secret(operator(), source)


def test_the_key_file_is_made_once_and_read_by_its_owner_alone(source, settings):
    path = settings.DATA_DIR / "secrets_key"
    before = path.read_text()
    set_secret(operator(), source, {"access_key_id": "a"})

    assert path.read_text() == before
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_row_names_its_key_and_a_new_key_seals_anew(source, settings):
    before = SourceSecret.objects.get().key_id
    call_command("rotate_secrets", new_key=True, stdout=io.StringIO())
    after = SourceSecret.objects.get()

    assert after.key_id != before
    first = (settings.DATA_DIR / "secrets_key").read_text().split()[0]
    assert after.key_id == key_id(first)
    settings.SECRETS_KEY = first
    assert open_secret(source)["secret_access_key"] == CANARIES[1]


def test_keys_of_the_environment_rotate_with_the_old_one_behind(db, settings):
    old, new = Fernet.generate_key().decode(), Fernet.generate_key().decode()
    settings.SECRETS_KEY = old
    source = connect_source(operator(), s3_wish())
    settings.SECRETS_KEY = f"{new},{old}"

    assert rotate_secrets() == 1
    assert rotate_secrets() == 0
    settings.SECRETS_KEY = new
    assert open_secret(source)["access_key_id"] == CANARIES[0]
    with pytest.raises(CommandError, match="COSTWATCH_SECRETS_KEY"):
        call_command("rotate_secrets", new_key=True)


def test_a_lost_key_is_told_without_a_word_of_the_credential(source, settings):
    settings.SECRETS_KEY = Fernet.generate_key().decode()

    with pytest.raises(SealingError, match="COSTWATCH_SECRETS_KEY") as refusal:
        open_secret(source)
    assert CANARIES[0] not in str(refusal.value)


def test_a_text_that_is_no_key_is_refused_by_its_place_not_its_content(db, settings):
    settings.SECRETS_KEY = "hunter2"
    with pytest.raises(SealingError, match="key 1 is no key") as refusal:
        connect_source(operator(), s3_wish())
    assert "hunter2" not in str(refusal.value)


def test_a_credential_is_forgotten_when_the_source_would_send_it_elsewhere(source, settings):
    settings.PRIVATE_HOSTS = ["minio.internal"]
    changed = {"bucket": "bills-of-ours", "endpoint_url": "http://minio.internal:9000"}

    change_source(operator(), source, s3_wish(secret={}, connection=changed))

    assert open_secret(source) is None


def test_a_credential_stays_when_only_the_folder_changes(source):
    changed = {"bucket": "bills-of-ours", "region": "us-east-1", "prefix": "cur"}
    change_source(operator(), source, s3_wish(secret={}, connection=changed))

    assert open_secret(source)["access_key_id"] == CANARIES[0]


def test_only_administrators_store_and_forget(source):
    for role in (OrganisationRole.MEMBER, OrganisationRole.AUDITOR):
        somebody = actor(person(f"a-{role}", role=role))
        with pytest.raises(PermissionDenied):
            set_secret(somebody, source, {"access_key_id": "x"})
        with pytest.raises(PermissionDenied):
            forget_secret(somebody, source)


def test_fields_that_a_kind_does_not_have_and_nothing_at_all_are_refused(source):
    with pytest.raises(ValidationError):
        connect_source(operator(), s3_wish(name="b", secret={"password": "x"}))
    with pytest.raises(ValidationError):
        set_secret(operator(), source, {"access_key_id": ""})

"""What was signed off is kept by PostgreSQL itself, whoever writes with the application's user."""

import pytest
from django.db import DatabaseError, connection, transaction

from carbon.checks import verify
from carbon.locks import allow_release
from carbon.models import EmissionEntry, PeriodLock, Restatement
from carbon.services import repost_site
from carbon.sign_off import approve_period, prepare_period, release_changes, reopen_period
from projects.access import system_actor
from tests.builders import organisation
from tests.carbon.book_builders import HOUR, hall, used
from tests.carbon.builders import NOW, START, factor

pytestmark = pytest.mark.django_db
DAY = 24 * HOUR
TABLES = (
    "carbon_emissionentry",
    "carbon_factorset",
    "carbon_periodlock",
    "carbon_restatement",
    "audit_auditentry",
)


def signer(name):
    return system_actor(organisation().pk, name)


@pytest.fixture
def place(tmp_path):
    found = hall(grid_g_per_kwh=400)
    used(tmp_path, *[10.0] * 30)
    return found


@pytest.fixture
def lock_id(place):
    found = prepare_period(signer("ada"), START, START + DAY, now=NOW)
    approve_period(signer("rita"), found, now=NOW)
    return found


def refused(sql, *parameters, match="refused"):
    with pytest.raises(DatabaseError, match=match), transaction.atomic():
        connection.cursor().execute(sql, parameters)


def changed(sql, *parameters):
    with connection.cursor() as cursor:
        cursor.execute(sql, parameters)
        return cursor.rowcount


@pytest.mark.parametrize("table", TABLES)
def test_nobody_empties_the_books(lock_id, table):
    with connection.cursor() as cursor:  # the suite turns these off to empty its own tables
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute(f"ALTER TABLE {table} ENABLE TRIGGER USER")
    refused(f"TRUNCATE {table} CASCADE", match="TRUNCATE is refused")
    assert EmissionEntry.objects.exists()


@pytest.mark.parametrize(
    "values",
    [
        "totals = '{}'",
        "totals = totals || '{\"scope_2_location_kgco2e\": 1}'",
        'totals = totals || \'{"released": {"digest": "x", "entries": 1}}\'',
        "digest = 'x'",
        "start = start - interval '1 day'",
        '"end" = "end" + interval \'1 day\'',
        "organisation_id = gen_random_uuid()",
        "id = gen_random_uuid()",
        "prepared_by = 'eve'",
        "prepared_at = now()",
        "approved_by = 'eve'",
        "approved_at = NULL",
        "approved_at = now()",
        "reason = 'because'",
        "reopened_at = now()",
        "reopened_at = now(), reopened_by = 'eve'",
    ],
)
def test_a_signed_period_keeps_what_was_signed(lock_id, values):
    refused(f"UPDATE carbon_periodlock SET {values}")


def test_a_signed_period_is_not_deleted_a_prepared_one_may_be(lock_id):
    refused("DELETE FROM carbon_periodlock")
    prepare_period(signer("ada"), START + DAY, START + 2 * DAY, now=NOW)
    assert changed("DELETE FROM carbon_periodlock WHERE approved_at IS NULL") == 1


@pytest.mark.parametrize(
    "values",
    [
        "approved_at = now(), approved_by = ''",
        "approved_at = now(), approved_by = 'Ada'",
        "approved_at = now(), approved_by = 'rita', totals = '{}'",
        "approved_at = now(), approved_by = 'rita', reopened_at = now(), reopened_by = 'r', "
        "reason = 'x'",
        "totals = '{}'",
        "digest = 'x'",
    ],
)
def test_a_prepared_period_is_approved_as_it_is_by_somebody_else(place, values):
    prepare_period(signer("ada"), START, START + DAY, now=NOW)
    refused(f"UPDATE carbon_periodlock SET {values}")
    assert changed("UPDATE carbon_periodlock SET approved_at = now(), approved_by = 'rita'") == 1


def test_a_period_is_not_born_approved(lock_id):
    columns = 'organisation_id, start, "end", totals, digest, prepared_by, prepared_at, reason'
    refused(
        f"INSERT INTO carbon_periodlock (id, {columns}, approved_by, approved_at, reopened_by) "
        f"SELECT gen_random_uuid(), {columns}, 'rita', now(), '' FROM carbon_periodlock"
    )


def test_a_reopened_period_stays_as_it_was_reopened(lock_id):
    reopen_period(signer("rita"), lock_id, reason="new invoice", now=NOW)
    for values in ("reopened_at = NULL", "reason = 'another'", "reopened_by = 'eve'"):
        refused(f"UPDATE carbon_periodlock SET {values}")
    refused("DELETE FROM carbon_periodlock")


@pytest.mark.parametrize(
    ("sql", "found"),
    [
        ("DELETE FROM carbon_periodlock", "no signed period"),
        ("UPDATE carbon_periodlock SET approved_at = NULL", "no signed period"),
        ("UPDATE carbon_periodlock SET reopened_at = now()", "reopened"),
        (
            "UPDATE carbon_periodlock SET totals = totals || '{\"water_source_l\": 1}'",
            "other totals",
        ),
    ],
)
def test_verify_misses_a_signature_that_the_tables_owner_took_away(lock_id, sql, found):
    assert verify(organisation().pk) == ()
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("ALTER TABLE carbon_periodlock DISABLE TRIGGER signed_periods_never_change")
        cursor.execute(sql)
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute("ALTER TABLE carbon_periodlock ENABLE TRIGGER signed_periods_never_change")
    findings = verify(organisation().pk)
    assert [(one.code, one.found) for one in findings] == [("period_signature", found)]


def test_even_a_release_leaves_the_signed_totals(place, lock_id):
    factor(place, "grid_g_per_kwh", 500)
    repost_site(place, now=NOW + DAY)
    release_changes(signer("rita"), lock_id, reason="meter was wrong", now=NOW + DAY)
    lock = PeriodLock.objects.get(pk=lock_id)
    assert lock.totals["released"]["entries"] == 24
    allow_release(True)
    refused("UPDATE carbon_periodlock SET totals = totals || '{\"entries\": 1}'")
    refused("UPDATE carbon_periodlock SET totals = totals - 'released'")
    assert verify(organisation().pk) == ()


def test_what_was_restated_is_never_unsaid(place, lock_id):
    factor(place, "grid_g_per_kwh", 500)
    repost_site(place, now=NOW + DAY)
    assert sorted(Restatement.objects.values_list("state", flat=True)) == ["held", "posted"]
    for state in ("held", "posted"):
        refused("DELETE FROM carbon_restatement WHERE state = %s", state)
        refused("UPDATE carbon_restatement SET detail = 'x' WHERE state = %s", state)
    refused("UPDATE carbon_restatement SET state = 'posted' WHERE state = 'held'")
    release_changes(signer("rita"), lock_id, reason="meter was wrong", now=NOW + DAY)
    assert set(Restatement.objects.values_list("state", flat=True)) == {"posted"}

"""The trail tells who changed what, cannot be altered, and shows it if somebody did."""

import threading
from contextlib import suppress
from decimal import Decimal

import pytest
from django.db import DatabaseError, connection, transaction
from django.db.transaction import TransactionManagementError

from audit.checks import verify_chain
from audit.models import AuditEntry
from audit.services import record
from tests import builders

pytestmark = pytest.mark.django_db


def note(organisation_id, number=1, after=None):
    return record(
        organisation_id=organisation_id,
        actor_label="alice",
        action="thing.change",
        object_type="thing",
        object_id=str(number),
        before={"n": number - 1},
        after=after or {"n": number},
    )


def without_triggers(sql, parameters=()):
    """What somebody with the owner's password could do."""
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE audit_auditentry DISABLE TRIGGER USER")
        cursor.execute(sql, parameters)
        cursor.execute("ALTER TABLE audit_auditentry ENABLE TRIGGER USER")


def test_a_whole_chain_has_no_findings():
    organisation = builders.organisation()
    for number in range(5):
        note(organisation.pk, number)
    assert verify_chain(organisation.pk) == ()


def test_what_jsonb_rewrites_does_not_break_the_chain():
    organisation = builders.organisation()
    after = {
        "large": 1e22,
        "tiny": 1e-300,
        "zero": -0.0,
        "nan": float("nan"),
        "cost": Decimal("1.10"),
        "text": "nul \x00, half \ud800, 模型",
        "keys": {"b": 1, "a": [1.0, 2.5]},
    }
    entry = note(organisation.pk, after=after)
    entry.refresh_from_db()
    assert entry.after["cost"] == "1.10"
    assert verify_chain(organisation.pk) == ()


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE audit_auditentry SET reason = 'x'",
        "DELETE FROM audit_auditentry",
        "TRUNCATE audit_auditentry",
    ],
)
def test_the_database_refuses_to_alter_the_trail(sql):
    note(builders.organisation().pk)
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE audit_auditentry ENABLE TRIGGER USER")
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        connection.cursor().execute(sql)
    assert AuditEntry.objects.count() == 1


def test_the_orm_is_refused_too():
    entry = note(builders.organisation().pk)
    entry.reason = "x"
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        entry.save()
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        entry.delete()


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        (
            "UPDATE audit_auditentry SET after = '{\"n\": 9}' WHERE position = 2",
            "audit_entry_changed",
        ),
        (
            "UPDATE audit_auditentry SET actor_label = 'bob' WHERE position = 3",
            "audit_entry_changed",
        ),
        (
            "UPDATE audit_auditentry SET at = at + interval '1 microsecond' WHERE position = 1",
            "audit_entry_changed",
        ),
        ("DELETE FROM audit_auditentry WHERE position = 2", "audit_gap"),
        ("DELETE FROM audit_auditentry WHERE position = 1", "audit_link_broken"),
    ],
)
def test_an_altered_entry_is_found(sql, code):
    organisation = builders.organisation()
    for number in range(1, 5):
        note(organisation.pk, number)
    without_triggers(sql)
    assert code in {finding.code for finding in verify_chain(organisation.pk)}


def test_an_entry_changed_with_its_hash_breaks_the_next_link():
    organisation = builders.organisation()
    for number in range(1, 4):
        note(organisation.pk, number)
    without_triggers("UPDATE audit_auditentry SET entry_hash = %s WHERE position = 2", ["a" * 64])
    codes = {finding.code for finding in verify_chain(organisation.pk)}
    assert codes == {"audit_entry_changed", "audit_link_broken"}


def test_each_organisation_has_a_chain_of_its_own():
    ours, theirs = builders.organisation(), builders.organisation("other")
    note(ours.pk)
    note(theirs.pk)
    note(ours.pk)
    positions = AuditEntry.objects.order_by("id").values_list("organisation_id", "position")
    assert list(positions) == [(ours.pk, 1), (theirs.pk, 1), (ours.pk, 2)]


@pytest.mark.django_db(transaction=True)
def test_a_change_without_a_transaction_cannot_be_recorded():
    with pytest.raises(TransactionManagementError):
        note(builders.organisation().pk)


@pytest.mark.django_db(transaction=True)
def test_a_rolled_back_change_leaves_no_entry():
    organisation = builders.organisation()
    with suppress(ZeroDivisionError), transaction.atomic():
        note(organisation.pk)
        _ = 1 / 0
    assert AuditEntry.objects.count() == 0


@pytest.mark.django_db(transaction=True)
def test_racing_writers_make_one_chain():
    organisation = builders.organisation()

    def write(first):
        try:
            for number in range(first, first + 10):
                with transaction.atomic():
                    note(organisation.pk, number)
        finally:
            connection.close()

    threads = [threading.Thread(target=write, args=(10 * index,)) for index in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert AuditEntry.objects.count() == 80
    assert verify_chain(organisation.pk) == ()

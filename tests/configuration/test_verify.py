"""`manage.py verify` says what differs, in words or JSON, and its exit status says whether."""

import io
import json

import pytest
from django.core.management import call_command

from audit.records import Finding
from costwatch.management.commands.verify import CHECKS
from tests import builders

pytestmark = pytest.mark.django_db

FOUND = Finding(code="month_total_differs", where="2026-10", expected="10.00", found="9.99")


@pytest.fixture(autouse=True)
def _organisation():
    builders.organisation()


def test_books_without_a_difference_hold():
    said = io.StringIO()
    call_command("verify", json=True, stdout=said)
    answer = json.loads(said.getvalue())
    assert answer == {
        "ok": True,
        "checks": ["audit", "billing", "carbon", "planning"],
        "findings": [],
    }


def test_a_difference_is_told_and_ends_with_1(monkeypatch):
    monkeypatch.setitem(CHECKS, "billing", lambda _organisation_id: [FOUND])
    said = io.StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("verify", stdout=said)
    assert ended.value.code == 1
    assert "billing: month_total_differs at 2026-10: expected 10.00, found 9.99" in said.getvalue()


def test_a_difference_in_json_names_its_room(monkeypatch):
    monkeypatch.setitem(CHECKS, "carbon", lambda _organisation_id: [FOUND])
    said = io.StringIO()
    with pytest.raises(SystemExit):
        call_command("verify", json=True, stdout=said)
    (finding,) = json.loads(said.getvalue())["findings"]
    assert finding["room"] == "carbon"
    assert finding["expected"] == "10.00"

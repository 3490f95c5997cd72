"""The command line of bills: one JSON document, exit codes that tell."""

import json
from decimal import Decimal
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from billing import configuration
from billing.models import Delivery
from tests.billing.builders import charge, focus_csv, gzipped, operator, organisation
from tests.builders import project

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _organisation() -> None:
    organisation()


@pytest.fixture
def bill(tmp_path) -> Path:
    path = tmp_path / "bill.csv"
    path.write_bytes(focus_csv([charge(BilledCost="1.50", Note="x"), charge(BilledCost="2.25")]))
    return path


@pytest.fixture
def run(capsys):
    """Run a command with --json and return its document."""

    def run(*words: str) -> dict:
        capsys.readouterr()  # what went before is another document
        call_command(*words, "--json")
        return json.loads(capsys.readouterr().out)

    return run


def test_import_prints_the_agreed_document(run, bill):
    document = run("import_charges", "--source", "aws", str(bill))

    assert document["source"] == "aws"
    assert document["format"] == "focus"
    assert document["rows"] == 2
    assert document["unknown_columns"] == ["Note"]
    assert document["periods"] == ["2026-05"]
    assert document["totals"] == [
        {
            "currency": "USD",
            "billed_cost": "3.75",
            "effective_cost": "2.2",
            "list_cost": "2.2",
            "contracted_cost": "2.2",
        }
    ]
    (batch,) = document["batches"]
    assert (batch["file"], batch["already_imported"], batch["rows"]) == ("bill.csv", False, 2)


def test_importing_again_says_so_and_changes_nothing(run, bill):
    run("import_charges", "--source", "aws", str(bill))

    document = run("import_charges", "--source", "aws", str(bill))

    assert document["batches"][0]["already_imported"] is True
    assert run("costs", "--group-by", "provider_name")["total"] == [
        {"currency": "USD", "cost": "3.75"}
    ]


def test_costs_print_the_agreed_document(run, bill):
    run("import_charges", "--source", "aws", str(bill))

    document = run("costs", "--group-by", "provider_name,month", "--basis", "effective")

    assert document == {
        "basis": "effective",
        "from": "2026-05-04",
        "to": "2026-05-05",
        "rows": [
            {
                "provider_name": "AWS",
                "month": "2026-05",
                "currency": "USD",
                "cost": "2.2",
                "accelerator_h": None,
                "idle_accelerator_h": None,
                "storage_tb_month": None,
                "requests": None,
                "transfer_bytes": None,
                "rows": 2,
            }
        ],
        "total": [{"currency": "USD", "cost": "2.2"}],
    }


def test_the_last_day_of_a_range_is_out(run, bill):
    run("import_charges", "--source", "aws", str(bill))

    assert run("costs", "--from", "2026-05-04", "--to", "2026-05-05")["total"]
    assert not run("costs", "--from", "2026-05-01", "--to", "2026-05-04")["total"]


def test_a_refused_file_ends_with_an_error_that_names_the_place(tmp_path):
    path = tmp_path / "bill.csv"
    path.write_bytes(focus_csv([charge(), charge(BilledCost="1.234,56")]))

    with pytest.raises(CommandError, match=r"bill\.csv, row 3, column BilledCost"):
        call_command("import_charges", "--source", "aws", str(path))


def test_a_shrinking_month_needs_the_flag(run, bill, tmp_path):
    smaller = tmp_path / "smaller.csv.gz"
    smaller.write_bytes(gzipped(focus_csv([charge(BilledCost="9")])))
    run("import_charges", "--source", "aws", str(bill))

    with pytest.raises(CommandError, match="--confirm-shrink"):
        call_command("import_charges", "--source", "aws", str(smaller))
    assert run("costs")["total"] == [{"currency": "USD", "cost": "3.75"}]

    run("import_charges", "--source", "aws", str(smaller), "--confirm-shrink")
    assert run("costs")["total"] == [{"currency": "USD", "cost": "9"}]


@pytest.mark.parametrize("words", [["--group-by", "colour"], ["--project", "nobody"]])
def test_costs_refuse_what_they_do_not_know(words):
    with pytest.raises(CommandError):
        call_command("costs", *words)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(CommandError, match="no such file"):
        call_command("import_charges", "--source", "aws", str(tmp_path / "none.csv"))
    assert not Delivery.objects.exists()


def test_sources_and_rules_can_be_written_and_read_as_configuration():
    project("moe")
    document = {
        "sources": [{"name": "aws", "format": "focus"}],
        "allocation_rules": [
            {"match": "tag", "key": "team", "value": "x", "project": "moe"},
            {"match": "sub_account", "value": "1", "project": "moe"},
        ],
    }

    assert configuration.apply(operator(), document)
    dumped = configuration.dump(organisation().pk)
    assert {section: dumped[section] for section in document} == document
    assert configuration.apply(operator(), document) == []


def test_costs_are_exact_beyond_the_precision_of_floats(run, tmp_path):
    path = tmp_path / "bill.csv"
    path.write_bytes(focus_csv([charge(BilledCost="12345678901234.123456789012345678")]))

    run("import_charges", "--source", "aws", str(path))

    (row,) = run("costs")["rows"]
    assert Decimal(row["cost"]) == Decimal("12345678901234.123456789012345678")

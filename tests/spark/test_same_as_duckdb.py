"""A real Spark cluster and DuckDB make the same of a bill: every row, every daily cost, every word.

The master and its two workers run on loopback (`cluster.py`); `make test-spark` runs this folder.
"""

import subprocess
import sys
from typing import Any
from uuid import uuid4

import pytest

from billing.checks import verify
from billing.models import ChargeSlice, DailyCost, Delivery
from lake import store
from lake.engine import open_engine
from tests.billing.builders import charge, costing, focus_csv, gzipped, imported, organisation

pytestmark = pytest.mark.django_db(transaction=True)
# other versions and seeds than the DuckDB tests take; 1.3 brings commitments
GENERATED = (("aws", "1.3", 4711), ("gcp", "1.2", 4712), ("azure", "1.2", 4713))
ROWS = 3000


def generated(folder) -> list[tuple[str, bytes]]:
    """FOCUS files that nobody here wrote."""
    tool, files = str(sys.executable).replace("python", "focus-toolkit"), []
    for provider, version, seed in GENERATED:
        out = folder / f"{provider}-{version}"
        command = [tool, "generate", "--provider", provider, "--focus-version", version]
        command += ["--rows", str(ROWS), "--seed", str(seed), "--out", str(out)]
        subprocess.run(command, check=True, capture_output=True)
        (path,) = out.glob("*cost_and_usage*.csv")
        files.append((f"{provider}-{version}.csv.gz", gzipped(path.read_bytes())))
    return files


def edges() -> bytes:
    """Rows on which engines are known to differ."""
    amounts = (
        "4.5E-7", "0E-10", "-3e2", "1.000000000000000001", "-0.0000000000000000005",
        "9999999999999999999.5", "-9999999999999999999.5", "0.123456789012345678901234567890",
        "-12.50", "0",
    )  # fmt: skip
    rows = [costing(amount) for amount in amounts]
    rows += [
        charge(Tags='{"project": "Train-1", "n": 3, "a": null}'),
        charge(Tags="{}"),
        charge(Tags='{"Ключ": "значение \\\\ \\" 训练"}'),
        charge(EffectiveCost="", ListCost="", ContractedCost="", ResourceId="", RegionId=""),
        charge(ChargeCategory=" usage ", ServiceCategory="COMPUTE", PricingCategory="strange"),
        charge(ChargeDescription="line\nbreak, comma and \"quote\" and 'tick' and \\ slash \\n"),
        charge(SkuMeter="USW2-BoxUsage:p5.48xlarge", ConsumedQuantity="7.25"),
        charge(
            SkuMeter="NVIDIA H100 GPU", ProviderName="Google Cloud", ConsumedUnit="seconds",
            ConsumedQuantity="123456789.123456789", ServiceName="Compute Engine",
        ),
        charge(SkuMeter="A100", ConsumedUnit="GPU minutes", ConsumedQuantity="0.1", Tags=""),
        charge(
            SkuMeter="TimedStorage-ByteHrs", ServiceName="AmazonS3", ServiceCategory="Storage",
            ConsumedUnit="GB-Mo", ConsumedQuantity="1234567.890123456789",
        ),
        charge(
            SkuMeter="Requests-Tier2", ServiceName="AmazonS3", ServiceCategory="Storage",
            ConsumedUnit="Requests", ConsumedQuantity="1E+9",
        ),
        charge(
            SkuMeter="DataTransfer-Out-Bytes", ServiceName="AmazonS3", ConsumedUnit="GB",
            ConsumedQuantity="0.000000001",
        ),
        charge(
            SkuMeter="训练gpu h100 Ġ100",
            ProviderName="谷歌 GCP",
            ConsumedUnit="hours",
            ServiceName="Compute Engine",
        ),
        charge(ServiceName="AmazonſS3", ServiceCategory="Other", SkuMeter="getrequests"),
        charge(SkuMeter="data transfer\r\nout", ConsumedUnit="GB"),
        charge(BillingCurrency="EUR", ChargePeriodStart="2026-05-31T23:59:59Z"),
        charge(ChargePeriodStart="2026-05-04 00:00:00", Unheard="of", ChargeClass="correction"),
        *(
            charge(ChargePeriodStart=f"2026-05-04{text}")
            for text in (
                " 10:11", " 10:11:12 UTC", " 10:11:12+00", " 10:11:12.123456+00:00",
                "T10:11Z", "T10:11:12.5Z", "T10:11:12.000001+00:00",
            )
        ),
    ]  # fmt: skip
    return focus_csv(rows)


def stored_rows(delivery: Delivery) -> list[dict[str, Any]]:
    """Every row of the slices with all that is stored of it, in the files' order."""
    rows: list[dict[str, Any]] = []
    for one in ChargeSlice.objects.filter(delivery=delivery).order_by("period__start"):
        with open_engine() as engine:
            columns = list(engine.table([one.path]).columns)
        for row in store.rows_of(one.path, columns=columns):
            for name in ("tags", "x_unknown"):
                row[name] = sorted(row[name]) if row.get(name) is not None else None
            rows.append(row)
    return sorted(rows, key=lambda row: (row["x_source_file"], row["x_source_row"]))


def types_of(delivery: Delivery) -> dict[str, str]:
    one = ChargeSlice.objects.filter(delivery=delivery).first()
    with open_engine() as engine:
        schema = engine.table([one.path]).schema()
    return {name: str(kind).replace("!", "") for name, kind in schema.items()}


def daily(delivery: Delivery) -> list[dict[str, Any]]:
    """Every daily cost, but for the ids of rows."""
    names = [
        field.attname
        for field in DailyCost._meta.concrete_fields
        if field.attname not in ("id", "version_id", "rule_set_id")
    ]
    found = DailyCost.objects.filter(version__delivery=delivery).values(*names)
    return sorted(found, key=lambda row: str(list(row.values())))


def report_of(delivery: Delivery) -> dict[str, Any]:
    """The report, but for the word that another source has the same bytes."""
    return {name: value for name, value in delivery.report.items() if name != "also_from"}


def assert_same(by_duckdb: Delivery, by_spark: Delivery) -> None:
    """The two deliveries hold the same, all of it."""
    assert by_duckdb.state == by_spark.state == Delivery.State.PUBLISHED
    assert by_spark.rows == by_duckdb.rows > 0
    assert by_spark.totals == by_duckdb.totals
    assert report_of(by_spark) == report_of(by_duckdb)
    expected, found = stored_rows(by_duckdb), stored_rows(by_spark)
    assert len(expected) == len(found) == by_duckdb.rows
    for left, right in zip(expected, found, strict=True):
        assert left == right
    assert daily(by_spark) == daily(by_duckdb) != []


def test_generated_bills_of_three_providers(cluster, on_spark, tmp_path, settings):
    files = generated(tmp_path)
    by_duckdb = imported(*files, source="duckdb")
    on_spark()
    by_spark = imported(*files, source="spark")

    settings.LAKE_ENGINE = "duckdb"
    assert_same(by_duckdb, by_spark)
    assert types_of(by_duckdb) == types_of(by_spark)
    assert verify(organisation().pk) == []
    assert cluster.executors() == 2


def test_rows_on_which_engines_differ(on_spark, settings):
    files = [("edges.csv", edges())]
    by_duckdb = imported(*files, source="duckdb")
    on_spark()
    by_spark = imported(*files, source="spark")

    settings.LAKE_ENGINE = "duckdb"
    assert_same(by_duckdb, by_spark)


@pytest.mark.parametrize(
    "row",
    [
        costing("1.5 USD"),
        costing("7\n"),
        costing("99999999999999999999999"),
        charge(ChargePeriodStart="2026-02-30T00:00:00Z"),
        charge(BillingCurrency="Dollar"),
        charge(ChargePeriodEnd=""),
    ],
    ids=["amount", "line break", "too large", "time", "currency", "empty"],
)
def test_a_refusal_names_the_same_cell(on_spark, row):
    content = focus_csv([charge(), row, charge()])
    by_duckdb = imported(content, source="duckdb")
    on_spark()
    by_spark = imported(content, source="spark")

    assert by_duckdb.state == by_spark.state == Delivery.State.REFUSED
    assert by_spark.refusal == by_duckdb.refusal


def test_a_sum_too_large_for_money_is_refused_by_both(on_spark):
    content = focus_csv([costing("99999999999999999999")] * 2)
    by_duckdb = imported(content, source="duckdb")
    on_spark()
    by_spark = imported(content, source="spark")

    assert by_duckdb.state == by_spark.state == Delivery.State.REFUSED
    assert by_spark.refusal == by_duckdb.refusal
    assert by_spark.refusal["code"] == "too_large"


def test_files_of_older_and_newer_columns_are_read_together(on_spark):
    paths = []
    for columns in ({"a": "x"}, {"a": "y", "b": [("k", "v")]}):
        with open_engine() as engine:
            types = {name: "map<string, string>" if name == "b" else "string" for name in columns}
            table = engine.small_table([columns], types)
            stored = store.store(
                dataset="tests",
                partition={"part": "one"},
                version=uuid4(),
                write=lambda path, table=table, engine=engine: engine.write(table, path),
            )
        paths.append(stored.path)
    on_spark()
    with open_engine() as engine:
        found = engine.rows(engine.table(paths).order_by("a"))

    assert found == [{"a": "x", "b": None}, {"a": "y", "b": [("k", "v")]}]

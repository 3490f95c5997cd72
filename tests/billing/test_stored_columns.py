"""A stored charge has every column of today, whatever its slice was written with."""

import pyarrow.parquet as pq
import pytest

from billing.checks import verify
from billing.columns import STORED_TYPES
from billing.lake_tables import stored_charges
from billing.models import ChargeSlice
from lake import store
from lake.engine import open_engine
from tests.billing.builders import charge, focus_csv, imported, in_month, organisation

pytestmark = pytest.mark.django_db(transaction=True)


def paths() -> list[str]:
    return list(ChargeSlice.objects.order_by("period__start").values_list("path", flat=True))


def test_columns_that_no_file_has_are_not_written_and_read_as_null():
    imported(focus_csv([charge()]))
    (path,) = paths()

    with pq.ParquetFile(store.resolve(path)) as file:
        written = set(file.schema_arrow.names)
    with open_engine() as engine:
        table = stored_charges(engine, [path])
        (row,) = engine.rows(table)

    assert "sku_id" not in written
    assert "x_price_label" not in written
    assert tuple(table.columns) == tuple(STORED_TYPES)
    assert {name: str(kind) for name, kind in table.schema().items()}["sku_id"] == "string"
    assert row["sku_id"] is None
    assert row["billing_account_name"] == "Example"


@pytest.mark.parametrize("newest_first", [False, True])
def test_slices_of_different_columns_are_one_table(newest_first):
    imported(focus_csv([in_month("2026-05", SkuId="A"), in_month("2026-05", SkuId="B")]))
    imported(focus_csv([in_month("2026-06", ResourceName="r")]))
    wanted = paths()[::-1] if newest_first else paths()

    with open_engine() as engine:
        table = stored_charges(engine, wanted)
        rows = engine.rows(table.select("sku_id", "resource_name").order_by("sku_id"))

    assert [tuple(row.values()) for row in rows] == [("A", None), ("B", None), (None, "r")]
    assert verify(organisation().pk) == []

"""Opens stored charges: every column of today, also those that a slice has no value for."""

from collections.abc import Sequence

import ibis

from billing.columns import STORED_TYPES
from lake.engine import Engine


def stored_charges(engine: Engine, paths: Sequence[str]) -> ibis.Table:
    """The charges in these slices; a column that a slice lacks is null there."""
    return with_every_column(engine.table(paths))


def with_every_column(table: ibis.Table) -> ibis.Table:
    """Charges in the order of columns of today, those put back that were not written as null."""
    there = {name: table[name] for name in table.columns}
    lacking = {name: ibis.null(kind) for name, kind in STORED_TYPES.items() if name not in there}
    known = {name: (there | lacking)[name] for name in STORED_TYPES}
    return table.select(**(known | there))

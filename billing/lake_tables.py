"""Opens stored charges: every column of today, whatever the slice knew when it was written."""

from collections.abc import Sequence

import ibis

from billing.columns import STORED_TYPES
from lake.engine import Engine


def stored_charges(engine: Engine, paths: Sequence[str]) -> ibis.Table:
    """The charges in these slices; a column that an older slice lacks is null there."""
    table = engine.table(paths)
    missing = {
        name: ibis.null(kind) for name, kind in STORED_TYPES.items() if name not in table.columns
    }
    return table.mutate(**missing) if missing else table

"""Opens a read file for the engine: rows counted, empty texts null, structures put in."""

from typing import Any, Final

import ibis

from lake.engine import Engine
from lake.text_files import TextTable

NULL_WORDS: Final = ("", "NULL")  # as in a CSV, where nothing tells an empty text from no text
SMALL_LOOKUP_BYTES: Final = 4 * 2**20


def open_text_table(engine: Engine, table: TextTable) -> ibis.Table:
    """The table with its own column names and `file_row_number`, counted from 0."""
    lines = engine.text_table(table.path)
    found: dict[str, str] = {}
    for number, (name, path) in enumerate(table.lookups.items()):
        text, found[name] = f"x_text_{number}", f"x_value_{number}"
        lookup = engine.text_table(path).select(**{text: "text", found[name]: "value"})
        if path.stat().st_size <= SMALL_LOOKUP_BYTES:
            # the engine sees that no text stands twice: it joins only where a value is wanted
            lookup = lookup.group_by(text).agg(**{found[name]: lookup[found[name]].arbitrary()})
        lines = lines.left_join(lookup, lines[name] == lookup[text])
    values: dict[str, Any] = {
        name: lines[found[name]] if name in found else _value(lines[name], table)
        for name in table.columns
        if name in table.types
    }
    return lines.select(**values, file_row_number=lines.file_row_number)


def _value(column: Any, table: TextTable) -> Any:
    if table.is_typed and column.type().is_string():
        return ibis.ifelse(column.isin(NULL_WORDS), ibis.null("string"), column)
    return column

"""The word by which the parsing child says no, and the bounds that all its readers share."""

from collections.abc import Callable
from typing import Any, Final

CHUNK_BYTES: Final = 2**20
MAX_COLUMNS: Final = 2000
Say = Callable[[dict[str, Any]], None]


class RefusedError(Exception):
    """Why the file is not taken, as the answer to the parent."""

    def __init__(
        self, code: str, message: str, *, row: int | None = None, column: str = ""
    ) -> None:
        super().__init__(message)
        self.answer = {"refused": code, "message": message, "row": row, "column": column}


def too_large(limit_bytes: int) -> RefusedError:
    """The refusal of what unpacks to more than allowed."""
    return RefusedError(
        "too_large", f"the file unpacks to more than {limit_bytes // 2**20} MiB; split it by month"
    )


def sql_text(text: str) -> str:
    """An SQL text literal."""
    return "'" + text.replace("'", "''") + "'"


def sql_name(name: str) -> str:
    """An SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def unique_names(columns: list[str]) -> list[str]:
    """The names as an engine that ignores case can hold them: a later twin gets a number."""
    taken: set[str] = set()
    names: list[str] = []
    for column in columns:
        name, number = column, 1
        while name.lower() in taken:
            number += 1
            name = f"{column} ({number})"
        taken.add(name.lower())
        names.append(name)
    return names

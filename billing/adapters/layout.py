"""The shape that every bill adapter answers in."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Where each charge column is found in a file, and what else the file holds."""

    columns: Mapping[str, str]  # charge column -> the file's column
    extra_columns: tuple[str, ...]  # everything else in the file; kept beside the charge columns
    unknown_columns: tuple[str, ...]  # those of them that the format does not know either
    missing_columns: tuple[str, ...]  # the format wants them; we can do without
    saw: str  # what detection saw, in words


class BillAdapter(Protocol):
    """One outside format: a table of its columns, nothing about engines or databases."""

    @property
    def name(self) -> str:
        """The word for it on the command line."""

    @property
    def json_columns(self) -> tuple[str, ...]:
        """The columns that hold JSON objects to be read as maps."""

    def recognises(self, columns: Sequence[str]) -> int:
        """How many of the columns only this format has; 0 means that it is another format."""

    def layout(self, columns: Sequence[str]) -> Layout:
        """Map the format's columns to charge columns.

        Raises:
            ChargesRefusedError: a column is missing without which no charge can be read.
        """

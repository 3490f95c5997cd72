"""Opens the European Central Bank's files of rates: the zip around its CSV, and its daily XML."""

import io
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final
from xml.parsers import expat  # doctypes and entities are refused below

from django.utils.translation import gettext as _

from billing.price_records import PricesRefusedError

ZIP_START: Final = b"PK\x03\x04"
ENVELOPE: Final = "Envelope"
CUBE: Final = "Cube"


def unzipped(content: bytes, *, file: str, limit_bytes: int) -> bytes:
    """The one CSV of a zip; other bytes as they are.

    Raises:
        PricesRefusedError: a broken or locked zip, none or several files in it, or one too large.
    """
    if not content.startswith(ZIP_START):
        return content
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            names = [one for one in archive.infolist() if not one.is_dir()]
            if len(names) != 1:
                raise PricesRefusedError(
                    _("the zip holds {count} files; it must hold one CSV.").format(
                        count=len(names)
                    ),
                    file=file,
                )
            with archive.open(names[0]) as packed:
                unpacked = packed.read(limit_bytes + 1)
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError, EOFError, OSError) as error:
        raise PricesRefusedError(
            _("the zip cannot be opened ({error}); download it again.").format(error=error),
            file=file,
        ) from error
    if len(unpacked) > limit_bytes:
        raise PricesRefusedError(
            _("the file in the zip has more than {limit} bytes.").format(limit=limit_bytes),
            file=file,
        )
    return unpacked


def is_xml(content: bytes) -> bool:
    """Whether the bytes begin as XML does."""
    return content.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(b"<")


def ecb_cells(content: bytes, *, file: str) -> Iterator[tuple[int, str, str, str]]:
    """(line, day, currency, rate) of every rate in the ECB's XML, as texts.

    Raises:
        PricesRefusedError: it is no XML, has a doctype or entities, or is not the ECB's.
    """
    reader = _EcbReader(file=file)
    try:
        reader.parser.Parse(content, True)
    except expat.ExpatError as error:
        raise PricesRefusedError(
            _("this is not XML ({error}); download the file again.").format(
                error=expat.ErrorString(error.code)
            ),
            file=file,
            row=error.lineno,
        ) from error
    if not reader.cells:
        raise PricesRefusedError(
            _("this XML holds no rate of the European Central Bank (eurofxref-daily.xml)."),
            file=file,
        )
    yield from reader.cells


@dataclass(slots=True, kw_only=True)
class _EcbReader:
    """Collects the cubes; names are compared without their namespaces."""

    file: str
    day: str = ""
    is_envelope: bool = False
    cells: list[tuple[int, str, str, str]] = field(default_factory=list)
    parser: Any = None

    def __post_init__(self) -> None:
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.StartElementHandler = self._element
        parser.StartDoctypeDeclHandler = self._refuse
        parser.EntityDeclHandler = self._refuse
        self.parser = parser

    def _element(self, name: str, attributes: dict[str, str]) -> None:
        plain = name.rpartition(" ")[2]
        self.is_envelope = self.is_envelope or plain == ENVELOPE
        if plain != CUBE or not self.is_envelope:
            return
        self.day = attributes.get("time", self.day)
        if "currency" in attributes or "rate" in attributes:
            line = self.parser.CurrentLineNumber
            self.cells.append(
                (line, self.day, attributes.get("currency", ""), attributes.get("rate", ""))
            )

    def _refuse(self, *_declaration: object) -> None:
        raise PricesRefusedError(
            _("the XML declares a document type or entities, which rates never need."),
            file=self.file,
            row=self.parser.CurrentLineNumber,
        )

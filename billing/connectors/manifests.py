"""Manifests as providers write them, read into one record. What is listed is not looked at here.

AWS Cost and Usage Report: `<report>-Manifest.json` with assemblyId, reportKeys, billingPeriod.
AWS Data Exports (CUR 2.0, FOCUS): `metadata/BILLING_PERIOD=YYYY-MM/…/<export>-Manifest.json` with
executionId, dataFiles. Azure cost exports: `manifest.json` with blobs, byteCount, runInfo. Own:
`manifest.json` with files, period, version_at, total.
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from django.utils.translation import gettext as _

from billing.connectors.contract import ConnectorError, JsonObject, StatedTotal

MAX_MANIFEST_BYTES: Final = 16 * 2**20
MAX_FILES: Final = 10_000
_BILLING_PERIOD: Final = re.compile(r"billing_period=(20\d\d)-(0[1-9]|1[0-2])(?:/|$)", re.I)
_RUN_TIME: Final = re.compile(r"(?<!\d)(20\d{6})T?(\d{6})Z?(?!\d)")
_WHOLE_MONTHS: Final = frozenset(
    {"MonthToDate", "BillingMonthToDate", "TheLastMonth", "TheLastBillingMonth", "TheCurrentMonth"}
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestFile:
    """One file that a manifest names; None where it does not say how large it is."""

    key: str
    size: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a manifest says, whoever wrote it."""

    kind: str
    version_id: str  # assembly, execution or run
    files: tuple[ManifestFile, ...]
    period: str | None = None
    version_at: datetime | None = None  # only where the manifest or its path says it
    stated_total: StatedTotal | None = None
    details: JsonObject = field(default_factory=dict)


def is_manifest(key: str) -> bool:
    """Whether an object is called as manifests are."""
    name = key.rsplit("/", 1)[-1].lower()
    return name in ("manifest.json", "_manifest.json") or name.endswith("-manifest.json")


def read_manifest(key: str, content: bytes) -> Manifest:
    """What the manifest says.

    Raises:
        ConnectorError: it is cut off, no JSON, or lacks what it must have (code "manifest").
    """
    try:
        document = json.loads(content, parse_float=Decimal)
    except (ValueError, RecursionError) as error:
        raise _broken(key, _("the manifest is cut off or no JSON")) from error
    if not isinstance(document, dict):
        raise _broken(key, _("the manifest is no JSON object"))
    for sign, read in _SHAPES.items():
        if sign in document:
            return _checked(key, document, read)
    raise _broken(key, _("the manifest names no files: reportKeys, dataFiles, blobs or files"))


def _checked(key: str, document: Mapping[str, Any], read: "_Reader") -> Manifest:
    try:
        manifest = read(key, document)
    except (KeyError, TypeError, AttributeError, ValueError, InvalidOperation) as error:
        raise _broken(
            key, _("the manifest lacks, or writes otherwise, what it must have")
        ) from error
    if not manifest.files:
        raise _broken(key, _("the manifest names no file"))
    if len(manifest.files) > MAX_FILES:
        raise _broken(key, _("the manifest names more than {count} files").format(count=MAX_FILES))
    if len({one.key for one in manifest.files}) < len(manifest.files):
        raise _broken(key, _("the manifest names a file twice"))
    for one in manifest.files:
        guard_key(one.key, where=key)
    return manifest


def _broken(key: str, message: str) -> ConnectorError:
    return ConnectorError("manifest", message, object=key)


def guard_key(key: str, *, where: str = "") -> None:
    """Let a key pass that means itself; one that climbs out of its folder does not.

    Raises:
        ConnectorError: it holds `..`, plainly or encoded, a backslash or control characters.
    """
    plain = unquote(unquote(key))
    segments = re.split(r"[/\\]", plain)
    if ".." in segments or "." in segments or "\\" in key or not key.isprintable() or not key:
        raise ConnectorError(
            "key", _("the file name {name!r} is refused").format(name=key[:200]), object=where
        )


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError("a text is wanted")
    return value


def _size(value: Any) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise TypeError("a count of bytes is wanted")
    return value


def _cost_and_usage_report(_key: str, document: Mapping[str, Any]) -> Manifest:
    bucket = str(document.get("bucket") or "")
    return Manifest(
        kind="aws_cur",
        version_id=_text(document["assemblyId"]),
        files=tuple(ManifestFile(key=_text(one)) for one in document["reportKeys"]),
        period=month_of(_text(document["billingPeriod"]["start"])),
        details={
            "assembly_id": document["assemblyId"],
            "report": document.get("reportName"),
            "account": document.get("account"),
            "bucket": bucket,
        },
    )


def _data_export(key: str, document: Mapping[str, Any]) -> Manifest:
    files = tuple(ManifestFile(key=_text(one)) for one in document["dataFiles"])
    paths = [key, *(one.key for one in files)]
    periods = {found for path in paths if (found := billing_period_in(path))}
    if len(periods) > 1:
        raise ValueError("files of two billing periods")
    run_times = [at for path in paths if (at := run_time_in(path))]
    return Manifest(
        kind="aws_data_export",
        version_id=_text(document["executionId"]),
        files=files,
        period=periods.pop() if periods else None,
        version_at=max(run_times, default=None),
        details={"execution_id": document["executionId"], "export": document.get("exportArn")},
    )


def _azure_export(_key: str, document: Mapping[str, Any]) -> Manifest:
    run, config = document["runInfo"], document.get("exportConfig") or {}
    files = tuple(
        ManifestFile(key=_text(one["blobName"]), size=_size(one.get("byteCount")))
        for one in document["blobs"]
    )
    stated_bytes = _size(document.get("byteCount"))
    sizes = [one.size for one in files if one.size is not None]
    if stated_bytes is not None and len(sizes) == len(files) and sum(sizes) != stated_bytes:
        raise ValueError("the sizes do not add up")
    if _size(document.get("blobCount")) not in (None, len(files)):
        raise ValueError("the count of blobs differs")
    return Manifest(
        kind="azure_export",
        version_id=_text(run["runId"]),
        files=files,
        period=_azure_period(run, config),
        version_at=instant_of(_text(run["submittedTime"])),
        details={
            "run_id": run["runId"],
            "export": config.get("exportName"),
            "dataset": config.get("type"),
            "data_version": config.get("dataVersion"),
            "rows": document.get("dataRowCount"),
        },
    )


def _azure_period(run: Mapping[str, Any], config: Mapping[str, Any]) -> str | None:
    """The month that a run holds whole up to its day; None for a week or a few days of it."""
    start, end = str(run.get("startDate") or ""), str(run.get("endDate") or "")
    is_whole = config.get("timeFrame") in _WHOLE_MONTHS and start[8:10] == "01"
    return month_of(start) if is_whole and start[:7] == end[:7] else None


def _own_manifest(_key: str, document: Mapping[str, Any]) -> Manifest:
    files = tuple(
        ManifestFile(key=_text(one))
        if isinstance(one, str)
        else ManifestFile(key=_text(one["key"]), size=_size(one.get("size")))
        for one in document["files"]
    )
    version_at = instant_of(_text(document["version_at"])) if "version_at" in document else None
    period = month_of(_text(document["period"])) if "period" in document else None
    return Manifest(
        kind="own",
        version_id=str(document.get("version") or document.get("version_at") or ""),
        files=files,
        period=period,
        version_at=version_at,
        stated_total=_total(document.get("total")) if period else None,
        details={"version": document.get("version")},
    )


def _total(value: Any) -> StatedTotal | None:
    if value is None:
        return None
    currency = _text(value["currency"])
    amount = Decimal(str(value["amount"]))
    if not re.fullmatch(r"[A-Z]{3}", currency) or not amount.is_finite():
        raise ValueError("no amount of money")
    return StatedTotal(
        amount=amount, currency=currency, invoice_id=str(value.get("invoice_id") or "")
    )


def month_of(text: str) -> str:
    """The month, as 2026-10, that a date or a range of dates begins with.

    Raises:
        ValueError: it begins with no month.
    """
    found = re.match(r"(20\d\d)-?(0[1-9]|1[0-2])(?:\D|\d\d|$)", text)
    if found is None:
        raise ValueError(f"{text[:40]!r} begins with no month")
    return f"{found[1]}-{found[2]}"


def billing_period_in(path: str) -> str | None:
    """The month of a `BILLING_PERIOD=2026-10` folder in the path."""
    found = _BILLING_PERIOD.search(path)
    return f"{found[1]}-{found[2]}" if found else None


def run_time_in(path: str) -> datetime | None:
    """The instant that a folder of one run carries in its name, as 20261004T061500Z-…"""
    found = _RUN_TIME.search(path)
    if found is None:
        return None
    try:
        return datetime.strptime(found[1] + found[2], "%Y%m%d%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return None


def instant_of(text: str) -> datetime:
    """An instant in ISO 8601; without an offset it is UTC, as Azure means it.

    Raises:
        ValueError: it is no instant.
    """
    plain = re.sub(r"(\.\d{6})\d+", r"\1", text.strip())  # Azure writes ten-millionths
    found = datetime.fromisoformat(plain)
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def key_in_store(key: str, *, place: str) -> str | None:
    """The key of a file that a manifest names by key or address; None in another bucket."""
    if "://" not in key:
        return key
    parts = urlsplit(key)
    is_same = parts.netloc.split("@")[0].lower() == place.lower()
    return key.split("://", 1)[1].partition("/")[2] if is_same else None


_Reader = Callable[[str, Mapping[str, Any]], Manifest]
_SHAPES: Final[Mapping[str, _Reader]] = {
    "reportKeys": _cost_and_usage_report,
    "dataFiles": _data_export,
    "blobs": _azure_export,
    "files": _own_manifest,
}

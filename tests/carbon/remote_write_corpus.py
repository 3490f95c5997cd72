"""Makes the files of corpus_b: bad and odd remote-write requests, and the answer that each gets.

    python -m tests.carbon.remote_write_corpus

writes them anew. The clock of every request is NOW.
"""

import csv
import gzip
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import cramjam

from tests.carbon.remote_write_bodies import (
    COUNTER,
    STALE,
    Ts,
    body,
    gpu,
    message,
    packed,
    piece,
    power,
    varint,
)

NOW = datetime(2026, 11, 20, 12, tzinfo=UTC)
NOW_MS = int(NOW.timestamp() * 1000)
T = NOW_MS - 120_000
HOUR_MS = 3_600_000
OWNER = UUID(int=7)  # a site
FOLDER = Path(__file__).parent / "corpus_b"
GOOD = power([400.0, 500.0, 600.0], at_ms=T)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One request of an item, its answer, and what is stored once it is booked."""

    item: str
    step: int = 1
    file: str = ""
    token: str = "good"  # none, unknown, revoked, no_scope, no_site
    content_type: str = "application/x-protobuf"
    encoding: str = "snappy"
    status: int = 204
    code: str = ""
    written: str = ""  # the header, where there is one
    power: int = 0  # rows stored in all after this step
    quarantined: int = 0
    why: str = ""


def one(value: float, at_ms: int = T, number: int = 0, **labels: str) -> Ts:
    return Ts(labels=gpu(number=number, **labels), samples=[(at_ms, value)])


def v2() -> bytes:
    symbols = b"".join(piece(4, text) for text in (b"", b"__name__", b"x", b"UUID", b"GPU-1"))
    sample = b"\x09" + b"\x00" * 6 + b"\x79\x40" + b"\x10" + varint(T)
    return packed(symbols + piece(5, piece(1, bytes([1, 2, 3, 4])) + piece(2, sample)))


def many_labels() -> Ts:
    more = {f"label_{number:04d}": "x" for number in range(1_000)}
    return Ts(labels=gpu(number=1, **more), samples=[(T, 1.0)])


def items() -> Iterator[tuple[Step, bytes]]:
    """Every step with its body."""
    good = body(*GOOD)
    taken = {"written": "3", "power": 3}
    yield Step(item="B01", token="none", status=401, code="not_authenticated"), good
    why = "a token that nobody knows"
    yield (
        Step(item="B01b", token="unknown", status=401, code="authentication_failed", why=why),
        good,
    )
    yield Step(item="B01c", token="revoked", status=401, code="authentication_failed"), good
    yield Step(item="B02", token="no_scope", status=403, code="permission_denied"), good
    yield Step(item="B02b", token="no_site", status=403, code="permission_denied"), good
    refused = {"status": 415, "code": "unsupported_media_type"}
    yield Step(item="B03", encoding="gzip", **refused), gzip.compress(message(GOOD), mtime=0)
    yield (
        Step(item="B03b", content_type="application/json", encoding="", **refused),
        json.dumps({"samples": []}).encode(),
    )
    yield Step(item="B03c", encoding="zstd", **refused), b"\x28\xb5\x2f\xfd"
    yield Step(item="B04", status=400, code="version_2", why="2.0 labelled as 1.0"), v2()
    of_v2 = "application/x-protobuf;proto=io.prometheus.write.v2.Request"
    yield Step(item="B04b", content_type=of_v2, **refused), v2()
    of_v1 = "application/x-protobuf;proto=prometheus.WriteRequest"
    yield Step(item="B04c", content_type=of_v1, **taken), good
    framed = bytes(cramjam.snappy.compress(message(GOOD)))
    yield Step(item="B05", status=400, code="snappy_framed"), framed
    yield Step(item="B06", status=400, code="snappy_bound"), b"\xff\xff\xff\xff\x0fab"
    bound = varint(22 * 100 + 1)
    yield (
        Step(item="B06b", status=400, code="snappy_bound", why="more than 22 times the body"),
        bound + b"\0" * (100 - len(bound)),
    )
    yield Step(item="B07", status=400, code="snappy_broken", why="cut short"), good[:-20]
    yield Step(item="B07b", status=400, code="snappy_broken", why="no bytes"), b""
    yield Step(item="B08", status=400, code="protobuf"), packed(b"\x0a\xff\xff\x03junk" * 3)
    yield Step(item="B08b", status=400, code="protobuf"), packed(piece(1, b"\x0a\xff\xff\xff\x7f"))
    yield from _labels()
    yield from _values()
    yield from _times()
    yield from _ignored()


def _labels() -> Iterator[tuple[Step, bytes]]:
    part = {"status": 400, "code": "partly_refused", "written": "3", "power": 3}
    part["quarantined"] = 1
    unsorted = Ts(labels=list(reversed(gpu(number=1))), samples=[(T, 1.0)])
    yield Step(item="B09", why="unsorted names", **part), body(*GOOD, unsorted)
    twice = Ts(labels=sorted([*gpu(number=1), ("job", "b")]), samples=[(T, 1.0)])
    yield Step(item="B09b", why="a name twice", **part), body(*GOOD, twice)
    empty = Ts(labels=[("", "x"), *gpu(number=1)], samples=[(T, 1.0)])
    yield Step(item="B09c", why="an empty name", **part), body(*GOOD, empty)
    yield Step(item="B10", why="1,000 labels", **part), body(*GOOD, many_labels())
    long = one(1.0, number=1, pod="x" * 65_536)
    yield Step(item="B10b", why="a value of 64 KiB", **part), body(*GOOD, long)
    nameless = Ts(labels=gpu(number=1, UUID=""), samples=[(T, 1.0)])
    yield Step(item="B10c", why="power of no device", **part), body(*GOOD, nameless)


def _values() -> Iterator[tuple[Step, bytes]]:
    stale = one(STALE, T + 30_000)
    yield (
        Step(item="B11", written="3", power=3, why="a stale marker is no reading"),
        body(*GOOD, stale),
    )
    bad = [one(value, number=2 + place) for place, value in enumerate((float("nan"), -5.0))]
    bad += [one(float("inf"), number=5), one(float("-inf"), number=6)]
    yield (
        Step(item="B12", status=400, code="partly_refused", written="3", power=3, quarantined=4),
        body(*GOOD, *bad),
    )
    for step in (1, 2):
        yield Step(item="B13", step=step, written="3", power=3, why="the same again"), body(*GOOD)
    yield (
        Step(item="B14", status=400, code="partly_refused", written="1", power=1, quarantined=1),
        body(one(400.0), one(401.0)),
    )
    yield Step(item="B14b", step=1, written="1", power=1), body(one(400.0))
    yield (
        Step(
            item="B14b",
            step=2,
            written="1",
            power=1,
            quarantined=1,
            why="in another request: which was first is known when it is booked; the first stays",
        ),
        body(one(401.0)),
    )


def _times() -> Iterator[tuple[Step, bytes]]:
    part = {"status": 400, "code": "partly_refused", "written": "3", "power": 3}
    part["quarantined"] = 1
    late = power([300.0, 310.0], at_ms=NOW_MS - 23 * HOUR_MS)
    yield Step(item="B15", step=1, written="3", power=3), body(*GOOD)
    yield Step(item="B15", step=2, written="2", power=5, why="late, within 24 h"), body(*late[::-1])
    older = one(300.0, NOW_MS - 25 * HOUR_MS)
    yield Step(item="B15b", why="older than 24 h", **part), body(*GOOD, older)
    yield Step(item="B16", why="seconds", **part), body(*GOOD, one(400.0, T // 1000))
    yield (
        Step(item="B17", why="a day ahead", **part),
        body(*GOOD, one(400.0, NOW_MS + 24 * HOUR_MS)),
    )
    yield Step(item="B17b", why="no year that exists", **part), body(*GOOD, one(4e2, 2**62))
    for step in (1, 2, 3):
        yield (
            Step(item="B18", step=step, written="24", power=24, why="replayed whole"),
            body(*[one(100.0 + number, number=number) for number in range(24)]),
        )
    yield (
        Step(item="B19", status=503, code="unavailable", why="the database does not answer"),
        body(*GOOD),
    )


def _ignored() -> Iterator[tuple[Step, bytes]]:
    foreign = [
        Ts(labels=[("__name__", "up"), ("instance", "a:1")], samples=[(T, 0.0)]),
        Ts(labels=[("__name__", "ALERTS"), ("alertname", "x")], samples=[(T, 1.0)]),
        Ts(labels=[("__name__", "http_seconds")], histograms=2),
    ]
    yield Step(item="B20", written="0", why="nothing of ours"), body(*foreign)
    yield Step(item="B20b", written="3", power=3), body(*GOOD, *foreign)
    yield Step(item="B20c", written="0", why="metadata only"), body(metadata=3)
    exemplar = Ts(labels=gpu(COUNTER), exemplars=1)
    yield Step(item="B20d", written="0", why="an exemplar without a sample"), body(exemplar)
    yield (
        Step(item="B20e", written="3", power=3, why="0 W is left out of the message"),
        body(*power([0.0, 0.0, 5.0], at_ms=T)),
    )


def write() -> None:
    """Write expect.csv and the bodies."""
    FOLDER.mkdir(exist_ok=True)
    with (FOLDER / "expect.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.DictWriter(file, [field.name for field in fields(Step)], lineterminator="\n")
        rows.writeheader()
        for step, content in items():
            name = f"{step.item}-{step.step}.bin"
            (FOLDER / name).write_bytes(content)
            rows.writerow(asdict(step) | {"file": name})


def expected() -> dict[str, list[Step]]:
    """The steps of each item, as expect.csv says."""
    found: dict[str, list[Step]] = {}
    with (FOLDER / "expect.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            whole = {name: int(row[name]) for name in ("step", "status", "power", "quarantined")}
            found.setdefault(row["item"], []).append(Step(**{**row, **whole}))
    return found


if __name__ == "__main__":
    write()

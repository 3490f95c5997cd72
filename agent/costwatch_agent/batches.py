"""Ticks as documents, and documents as the body of a batch in the format costwatch-agent/1."""

import gzip
import json
import time
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from costwatch_agent import VERSION
from costwatch_agent.records import SENT_COLUMNS, Document, Tick
from costwatch_agent.spool import Cut

FORMAT: Final = "costwatch-agent/1"
MAX_ROWS: Final = 20_000  # of one batch: about 1 MB unpacked, far below what the server takes


def tick_documents(tick: Tick) -> list[Document]:
    """What is kept of a tick: one document, or one for each meaning that power has on the node."""
    named = sorted({device.power_field for device in tick.devices if device.power_field})
    if len(named) <= 1:
        return [_tick_document(tick, named[0] if named else "")]
    documents = []
    for field in named:
        is_first = field == named[0]
        part = _part(tick, {field, ""} if is_first else {field}, with_nodes=is_first)
        documents.append(_tick_document(part, field))
    return documents


def _part(tick: Tick, power_fields: set[str], *, with_nodes: bool) -> Tick:
    """The devices of a tick whose power means one thing, numbered anew."""
    chosen = [at for at, device in enumerate(tick.devices) if device.power_field in power_fields]
    anew = {old: new for new, old in enumerate(chosen)}
    return Tick(
        devices=tuple(tick.devices[at] for at in chosen),
        readings=tuple(
            replace(reading, device=anew[reading.device])
            for reading in tick.readings
            if reading.device in anew
        ),
        nodes=tick.nodes if with_nodes else (),
        jobs=tuple(
            replace(job, device=anew[job.device]) for job in tick.jobs if job.device in anew
        ),
    )


def _tick_document(tick: Tick, power_field: str) -> Document:
    columns: dict[str, Any] = {"device": [reading.device for reading in tick.readings]}
    for name in SENT_COLUMNS:
        columns[name] = [getattr(reading, name) for reading in tick.readings]
    return {
        "devices": [device.document() for device in tick.devices],
        "power_field": power_field,
        "columns": columns,
        "nodes": [asdict(reading) for reading in tick.nodes],
        "jobs": [asdict(job) for job in tick.jobs],
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchBuilder:
    """Writes batches of one node."""

    name: str  # the agent's and the node's

    def lengths(self, ticks: list[Document]) -> list[int]:
        """Ticks that follow each other go together while their devices are described alike."""
        lengths: list[int] = []
        rows = 0
        for at, tick in enumerate(ticks):
            size = len(tick["columns"]["device"]) + len(tick["nodes"])
            if lengths and rows + size <= MAX_ROWS and _alike(tick, ticks[at - 1]):
                lengths[-1] += 1
                rows += size
            else:
                lengths.append(1)
                rows = size
        return lengths

    def body(self, cut: Cut) -> bytes:
        """The batch's bytes: compact JSON, compressed. The same cut makes the same bytes."""
        first = cut.ticks[0] if cut.ticks else _tick_document(Tick(), "")
        readings: dict[str, Any] = {
            name: [value for tick in cut.ticks for value in tick["columns"][name]]
            for name in ("device", *SENT_COLUMNS)
        }
        always = {"device", "at_ms"}
        readings = {
            name: values
            for name, values in readings.items()
            if name in always or any(value is not None for value in values)
        }
        if "power_w" in readings:
            readings["power_field"] = first["power_field"]
        document = {
            "format": FORMAT,
            "agent": {"name": self.name, "version": VERSION},
            "boot": cut.boot,
            "sequence": cut.sequence,
            "dropped": cut.dropped,
            "node": self.name,
            "sent_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "devices": first["devices"],
            "readings": readings,
            "node_readings": [node for tick in cut.ticks for node in tick["nodes"]],
            "jobs": [job for tick in cut.ticks for job in tick["jobs"]],
        }
        text = json.dumps(document, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        return gzip.compress(text.encode(), compresslevel=6, mtime=0)


def _alike(one: Document, other: Document) -> bool:
    return bool(one["devices"] == other["devices"] and one["power_field"] == other["power_field"])

"""Loopback stand-ins for three services of grid intensity, written from their documented shapes.

Each can be told to fail as the real ones do: 401, 429 with Retry-After, 500, silence, holes,
nulls, revised estimates, another zone than the asked one, hours told twice, clocks that run ahead.
"""

import base64
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

HOUR = timedelta(hours=1)
Answer = tuple[int, dict[str, str], Any]


@dataclass
class Hour:
    """What the grid of a zone was in one hour, as a service would tell it."""

    value: float | None
    is_estimated: bool = False
    updated_at: datetime | None = None


@dataclass
class Grid:
    """The truth that all stand-ins tell, and the faults to show."""

    now: datetime
    hours: dict[str, dict[datetime, Hour]] = field(default_factory=dict)
    faults: list[Answer | None] = field(default_factory=list)  # one a request, first first
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    token: str = "em-token"
    plan_has_past: bool = True
    tells_zone: str = ""  # another zone than the asked one, as by the caller's address
    duplicates: list[dict[str, Any]] = field(default_factory=list)
    aoer_regions: tuple[str, ...] = ("CAISO_NORTH",)
    logins: int = 0
    units: str = "lbs_co2_per_mwh"
    missing_points: set[str] = field(default_factory=set)

    def fill(self, zone: str, start: datetime, values: list[float | None], **more: Any) -> None:
        for step, value in enumerate(values):
            at = start + step * HOUR
            self.hours.setdefault(zone, {})[at] = Hour(value, updated_at=at + 2 * HOUR, **more)


def text(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")


def electricity_maps(grid: Grid, path: str, query: dict[str, str], headers: Any) -> Answer:
    if headers.get("auth-token") != grid.token:
        return 401, {}, {"error": "Invalid auth-token"}
    zone = query.get("zone", "")
    if zone not in grid.hours and query.get("shouldUseFallbackCallerLookup") == "false":
        return 404, {}, {"message": f"No data for zone {zone}"}
    told_zone = grid.tells_zone or (zone if zone in grid.hours else "XX")
    basis = query.get("emissionFactorType", "lifecycle")
    add = 0 if basis == "direct" else 25

    def row(at: datetime, one: Hour) -> dict[str, Any]:
        return {
            "zone": told_zone,
            "carbonIntensity": None if one.value is None else one.value + add,
            "datetime": text(at),
            "updatedAt": text(one.updated_at or at + 2 * HOUR),
            "createdAt": text(at - HOUR),
            "emissionFactorType": basis,
            "isEstimated": one.is_estimated,
            "estimationMethod": "TIME_SLICER_AVERAGE" if one.is_estimated else None,
        }

    hours = sorted(grid.hours.get(zone, {}).items())
    name = path.rpartition("/")[2]
    if name == "latest":
        return 200, {}, row(*hours[-1]) if hours else {"zone": told_zone}
    if name == "history":
        first = grid.now.replace(minute=0, second=0, microsecond=0) - 23 * HOUR
        rows = [row(at, one) for at, one in hours if at >= first]
        return 200, {}, {"zone": told_zone, "history": rows + grid.duplicates}
    refusal = _past_refused(grid, query)
    if refusal is not None:
        return refusal
    start, end = (datetime.fromisoformat(query[key]) for key in ("start", "end"))
    rows = [row(at, one) for at, one in hours if start <= at < end]
    return 200, {}, {"zone": told_zone, "temporalGranularity": "hourly", "data": rows}


def _past_refused(grid: Grid, query: dict[str, str]) -> Answer | None:
    if not grid.plan_has_past:
        return 401, {}, {"message": "Your plan does not include this endpoint"}
    start, end = (datetime.fromisoformat(query[key]) for key in ("start", "end"))
    if end - start > timedelta(days=10):
        return 400, {}, {"message": "The range may span 10 days"}
    return None


def watttime(grid: Grid, path: str, query: dict[str, str], headers: Any) -> Answer:
    if path.endswith("/login"):
        wanted = "Basic " + base64.b64encode(b"ada:pass").decode()
        if headers.get("Authorization") != wanted:
            return 401, {}, {"detail": "Invalid credentials"}
        grid.logins += 1
        return 200, {}, {"token": "wt-token"}
    if headers.get("Authorization") != "Bearer wt-token":
        return 401, {}, {"detail": "Token expired"}
    if path.endswith("/v3/my-access"):
        regions = {"co2_aoer": grid.aoer_regions, "co2_moer": tuple(grid.hours)}
        return 200, {}, {
            "signal_types": [
                {"signal_type": signal, "regions": [{"region": one} for one in known]}
                for signal, known in regions.items()
            ]
        }  # fmt: skip
    return _historical(grid, query)


def _historical(grid: Grid, query: dict[str, str]) -> Answer:
    region, signal = query["region"], query["signal_type"]
    if signal == "co2_aoer" and region not in grid.aoer_regions:
        return 403, {}, {"detail": "You do not have access to this signal"}
    start, end = (datetime.fromisoformat(query[key]) for key in ("start", "end"))
    if end - start > timedelta(days=32):
        return 400, {}, {"detail": "The window may span 32 days"}
    step = HOUR if signal == "co2_aoer" else timedelta(minutes=5)
    rows = []
    for at, one in sorted(grid.hours.get(region, {}).items()):
        for part in range(HOUR // step):
            point = (at + part * step).isoformat()
            if start <= at < end and one.value is not None and point not in grid.missing_points:
                more = {"imputed_data_used": one.is_estimated} if step == HOUR else {}
                rows.append({"point_time": point, "value": one.value / 0.45359237, **more})
    meta = {
        "data_point_period_seconds": int(step.total_seconds()),
        "region": grid.tells_zone or region,
        "warnings": [],
        "signal_type": signal,
        "model": {"date": "2023-03-01"},
        "units": grid.units,
    }
    return 200, {}, {"data": rows, "meta": meta}


def uk_carbon_intensity(grid: Grid, path: str, query: dict[str, str], headers: Any) -> Answer:
    del query, headers
    start, end = (datetime.fromisoformat(part) for part in path.split("/")[-2:])
    if end - start > timedelta(days=14):
        return 400, {}, {"error": {"code": "400 Bad Request", "message": "14 days at most"}}
    rows = []
    for at, one in sorted(grid.hours.get("GB", {}).items()):
        for half in range(2):
            first = at + half * HOUR / 2
            # The real one starts with the half hour before the asked one.
            if start - HOUR / 2 <= first < end and text(first) not in grid.missing_points:
                actual = None if one.is_estimated or one.value is None else one.value + 2 * half
                told = {"forecast": 200 + half, "actual": actual, "index": "moderate"}
                rows.append(
                    {
                        "from": f"{first:%Y-%m-%dT%H:%MZ}",
                        "to": f"{first + HOUR / 2:%Y-%m-%dT%H:%MZ}",
                        "intensity": told,
                    }
                )
    return 200, {}, {"data": rows}


def _door(grid: Grid, path: str, query: dict[str, str], headers: Any) -> Answer:
    if path.startswith("/em/"):
        return electricity_maps(grid, path, query, headers)
    if path.startswith("/wt/"):
        return watttime(grid, path, query, headers)
    return uk_carbon_intensity(grid, path, query, headers)


@contextmanager
def serving(grid: Grid) -> Iterator[str]:
    """The stand-ins on one loopback port: /em, /wt and /uk under the address given."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            grid.asked.append((parts.path, query))
            grid.headers.append({name.lower(): value for name, value in self.headers.items()})
            fault = grid.faults.pop(0) if grid.faults else None
            status, more, document = fault or _door(grid, parts.path, query, self.headers)
            if status == 0:  # silence
                threading.Event().wait(1.5)
                return
            body = document if isinstance(document, bytes) else json.dumps(document).encode()
            self.send_response(status)
            for name, value in more.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()

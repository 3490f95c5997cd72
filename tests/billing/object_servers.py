"""Web servers that answer as Google Cloud Storage and Azure Blob document it: list and read."""

import hashlib
import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from urllib.parse import unquote
from xml.sax.saxutils import escape

from tests.billing.stores import Answer, Asked, WebServer

UPDATED = "2026-06-01T06:00:00.000Z"
HTTP_DATE = "Mon, 01 Jun 2026 06:00:00 GMT"


@dataclass(slots=True)
class Objects:
    """The objects of a server, each with the count of its states."""

    contents: dict[str, bytes] = field(default_factory=dict)
    states: dict[str, int] = field(default_factory=dict)
    fault: Callable[[Asked], Answer | None] = lambda _asked: None
    page: int = 1000

    def put(self, key: str, content: bytes) -> None:
        self.contents[key] = content
        self.states[key] = self.states.get(key, 0) + 1

    def etag(self, key: str) -> str:
        return hashlib.sha256(f"{key}{self.states[key]}".encode()).hexdigest()[:16]


def ranged(content: bytes, wanted: str) -> tuple[int, bytes, dict[str, str]]:
    """Status, bytes and headers of a read, of a part where one is asked for."""
    found = re.fullmatch(r"bytes=(\d+)-(\d*)", wanted or "")
    if found is None:
        return 200, content, {}
    start, end = int(found[1]), int(found[2] or len(content) - 1)
    part = content[start : end + 1]
    where = f"bytes {start}-{start + len(part) - 1}/{len(content)}"
    return 206, part, {"Content-Range": where}


def paged(objects: Objects, prefix: str, token: str) -> tuple[list[str], str]:
    keys = sorted(key for key in objects.contents if key.startswith(prefix))
    start = int(token or 0)
    following = str(start + objects.page) if start + objects.page < len(keys) else ""
    return keys[start : start + objects.page], following


def google(objects: Objects) -> WebServer:
    """A server of the JSON API of Google Cloud Storage, for the bucket `bills`."""

    def answer(asked: Asked, _body: bytes) -> Answer:
        if (fault := objects.fault(asked)) is not None:
            return fault
        if asked.path == "/storage/v1/b/bills/o":
            prefix = asked.query.get("prefix", [""])[0]
            keys, following = paged(objects, prefix, asked.query.get("pageToken", [""])[0])
            document = {"kind": "storage#objects", "items": [item(key) for key in keys]}
            return in_json(document | ({"nextPageToken": following} if following else {}))
        key = unquote(asked.path).removeprefix("/download/storage/v1/b/bills/o/")
        if key not in objects.contents:
            return google_error(404, "No such object")
        generation = asked.query.get("generation", [""])[0]
        if generation and generation != str(objects.states[key]):
            return google_error(404, "No such object")
        status, part, headers = ranged(objects.contents[key], asked.headers.get("Range", ""))
        return Answer(status=status, body=part, headers=headers)

    def item(key: str) -> dict[str, str]:
        return {
            "kind": "storage#object",
            "name": key,
            "bucket": "bills",
            "generation": str(objects.states[key]),
            "metageneration": "1",
            "contentType": "text/csv",
            "size": str(len(objects.contents[key])),
            "etag": objects.etag(key),
            "timeCreated": UPDATED,
            "updated": UPDATED,
        }

    return WebServer(answer)


def in_json(document: object, status: int = 200) -> Answer:
    headers = {"Content-Type": "application/json; charset=UTF-8"}
    return Answer(status=status, body=json.dumps(document).encode(), headers=headers)


def google_error(status: int, message: str) -> Answer:
    errors = [{"message": message, "domain": "global", "reason": "x"}]
    document = {"error": {"code": status, "message": message, "errors": errors}}
    return in_json(document, status)


def azure(objects: Objects) -> WebServer:
    """A server of the REST API of Azure Blob, for the container `bills` of `account`."""

    def answer(asked: Asked, _body: bytes) -> Answer:
        if (fault := objects.fault(asked)) is not None:
            return fault
        if asked.query.get("comp") == ["list"]:
            prefix = asked.query.get("prefix", [""])[0]
            keys, following = paged(objects, prefix, asked.query.get("marker", [""])[0])
            return in_xml(listing(prefix, keys, following))
        key = unquote(asked.path).removeprefix("/account/bills/")
        if key not in objects.contents:
            return azure_error(404, "BlobNotFound")
        wanted = asked.headers.get("x-ms-range", "") if asked.method == "GET" else ""
        status, part, headers = ranged(objects.contents[key], wanted)
        return Answer(
            status=status,
            body=part,
            headers={
                **headers,
                "ETag": f'"{objects.etag(key)}"',
                "Last-Modified": HTTP_DATE,
                "x-ms-blob-type": "BlockBlob",
                "x-ms-version": "2025-05-05",
                "Content-Type": "text/csv",
                "Content-Length": str(len(part)),
            },
        )

    def listing(prefix: str, keys: list[str], following: str) -> str:
        blobs = "".join(
            f"<Blob><Name>{escape(key)}</Name><Properties>"
            f"<Creation-Time>{HTTP_DATE}</Creation-Time><Last-Modified>{HTTP_DATE}</Last-Modified>"
            f"<Etag>{objects.etag(key)}</Etag>"
            f"<Content-Length>{len(objects.contents[key])}</Content-Length>"
            "<Content-Type>text/csv</Content-Type><BlobType>BlockBlob</BlobType>"
            "</Properties></Blob>"
            for key in keys
        )
        return (
            '<?xml version="1.0" encoding="utf-8"?>'
            '<EnumerationResults ServiceEndpoint="http://127.0.0.1/" ContainerName="bills">'
            f"<Prefix>{escape(prefix)}</Prefix><Blobs>{blobs}</Blobs>"
            f"<NextMarker>{following}</NextMarker></EnumerationResults>"
        )

    return WebServer(answer)


def in_xml(text: str, status: int = 200, **headers: str) -> Answer:
    return Answer(
        status=status, body=text.encode(), headers={"Content-Type": "application/xml", **headers}
    )


def azure_error(status: int, code: str) -> Answer:
    text = f'<?xml version="1.0"?><Error><Code>{code}</Code><Message>{code}</Message></Error>'
    return in_xml(text, status, **{"x-ms-error-code": code})

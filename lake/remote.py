"""The lake's bucket: checked uploads and downloads of whole files; keeps no copies, no meaning."""

import base64
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from django.conf import settings

from lake.places import BUCKET_SCHEME, LakeError, is_remote

PIECE_BYTES: Final = 64 * 2**20  # a file up to this size goes in one request
MAX_PIECES: Final = 9_000  # S3 takes 10 000
CHUNK_BYTES: Final = 2**20
HASH_KEY: Final = "sha256"  # in the object's metadata
_ABSENT: Final = frozenset({"404", "NoSuchKey", "NotFound"})


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteFile:
    """One object; `path` is relative to the lake's root."""

    path: str
    size_bytes: int
    modified_at: datetime

    def is_older_than(self, age_s: float) -> bool:
        """Whether it was written at least that long ago."""
        return datetime.now(tz=UTC) - self.modified_at >= timedelta(seconds=age_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bucket:
    """Where the lake's objects lie; `prefix` is empty or ends in a slash."""

    name: str
    prefix: str
    client: Any

    def upload(self, source: Path, path: str) -> None:
        """Store a file whole; the server checks its MD5, we its size.

        Raises:
            LakeError: it did not arrive; nothing may refer to it.
        """
        size_bytes, sha256 = source.stat().st_size, _sha256(source)
        with self._words("write", path):
            if size_bytes <= PIECE_BYTES:
                content = source.read_bytes()
                self.client.put_object(
                    **self._object(path),
                    Body=content,
                    ContentMD5=_md5(content),
                    Metadata={HASH_KEY: sha256},
                )
            else:
                self._upload_pieces(source, path, sha256)
            found = self.client.head_object(**self._object(path))
        if found["ContentLength"] != size_bytes or found["Metadata"].get(HASH_KEY) != sha256:
            raise LakeError(f"{self._shown(path)} is not what was written to it")

    def _upload_pieces(self, source: Path, path: str, sha256: str) -> None:
        """Store a large file in pieces; a failure takes those that arrived back."""
        place = self._object(path)
        piece_bytes = max(PIECE_BYTES, -(-source.stat().st_size // MAX_PIECES))
        started = self.client.create_multipart_upload(**place, Metadata={HASH_KEY: sha256})
        place["UploadId"] = started["UploadId"]
        try:
            pieces: list[dict[str, Any]] = []
            with source.open("rb") as file:
                while content := file.read(piece_bytes):
                    number = len(pieces) + 1
                    answer = self.client.upload_part(
                        **place, PartNumber=number, Body=content, ContentMD5=_md5(content)
                    )
                    pieces.append({"PartNumber": number, "ETag": answer["ETag"]})
            self.client.complete_multipart_upload(**place, MultipartUpload={"Parts": pieces})
        except (ClientError, BotoCoreError, OSError):
            self.client.abort_multipart_upload(**place)
            raise

    def fetch(self, path: str, target: Path) -> None:
        """Write an object to a new local file and check its size and checksum.

        Raises:
            LakeError: it is not there, or not what was stored.
        """
        digest, md5, size_bytes = hashlib.sha256(), hashlib.md5(usedforsecurity=False), 0
        with self._words("read", path), target.open("xb") as file:
            answer = self.client.get_object(**self._object(path))
            for chunk in answer["Body"].iter_chunks(CHUNK_BYTES):
                digest.update(chunk)
                md5.update(chunk)
                size_bytes += len(chunk)
                file.write(chunk)
        expected = answer["Metadata"].get(HASH_KEY)
        etag = answer["ETag"].strip('"')
        if expected is None and len(etag) == 32 and "SSEKMSKeyId" not in answer:
            expected, digest = etag, md5  # copied here by other means than ours
        is_whole = size_bytes == answer["ContentLength"]
        if not is_whole or (expected is not None and expected != digest.hexdigest()):
            raise LakeError(f"{self._shown(path)} is damaged: its checksum or size is wrong")

    def find(self, path: str) -> RemoteFile | None:
        """The object's size and time; None when it is not there."""
        with self._words("look for", path):
            try:
                found = self.client.head_object(**self._object(path))
            except ClientError as error:
                if error.response["Error"]["Code"] in _ABSENT:
                    return None
                raise
        return RemoteFile(
            path=path, size_bytes=found["ContentLength"], modified_at=found["LastModified"]
        )

    def remove(self, path: str) -> None:
        """Forget an object; one that is not there is forgotten already."""
        with self._words("remove", path):
            self.client.delete_object(**self._object(path))

    def listing(self, folder: str) -> Iterator[RemoteFile]:
        """Every object below a folder."""
        asked = {"Bucket": self.name, "Prefix": f"{self.prefix}{folder}/"}
        with self._words("list", folder):
            for page in self.client.get_paginator("list_objects_v2").paginate(**asked):
                for item in page.get("Contents", ()):
                    yield RemoteFile(
                        path=item["Key"].removeprefix(self.prefix),
                        size_bytes=item["Size"],
                        modified_at=item["LastModified"],
                    )

    def abort_uploads(self, folder: str, *, age_s: float) -> None:
        """Take back pieces of uploads that were begun that long ago and never ended."""
        asked = {"Bucket": self.name, "Prefix": f"{self.prefix}{folder}/"}
        limit = datetime.now(tz=UTC) - timedelta(seconds=age_s)
        with self._words("list", folder):
            for page in self.client.get_paginator("list_multipart_uploads").paginate(**asked):
                for item in page.get("Uploads", ()):
                    if item["Initiated"] <= limit:
                        self.client.abort_multipart_upload(
                            Bucket=self.name, Key=item["Key"], UploadId=item["UploadId"]
                        )

    def _object(self, path: str) -> dict[str, Any]:
        return {"Bucket": self.name, "Key": self.prefix + path}

    def _shown(self, path: str) -> str:
        return f"{BUCKET_SCHEME}{self.name}/{self.prefix}{path}"

    @contextmanager
    def _words(self, what: str, path: str) -> Iterator[None]:
        """Turn the client's errors into ours: what failed, where, and what may help."""
        try:
            yield
        except ClientError as error:
            code = str(error.response["Error"]["Code"])
            if code in _ABSENT:
                raise LakeError(f"{self._shown(path)} is missing from the lake") from error
            advice = (
                ": let the credentials read, write, list and delete there"
                if code in ("AccessDenied", "403")
                else ""
            )
            raise LakeError(f"cannot {what} {self._shown(path)}: {code}{advice}") from error
        except BotoCoreError as error:
            raise LakeError(f"cannot {what} {self._shown(path)}: {error}") from error


def bucket() -> Bucket | None:
    """The lake's bucket; None when the lake is a folder.

    Raises:
        LakeError: LAKE_URL names no bucket.
    """
    if not is_remote():
        return None
    name, _, prefix = str(settings.LAKE_URL).removeprefix(BUCKET_SCHEME).partition("/")
    if not name:
        raise LakeError(f"LAKE_URL is {settings.LAKE_URL!r}: name a bucket, s3://bucket/prefix")
    prefix = prefix.strip("/")
    return Bucket(
        name=name,
        prefix=f"{prefix}/" if prefix else "",
        client=_client(settings.LAKE_S3_ENDPOINT_URL, settings.LAKE_S3_REGION, os.getpid()),
    )


@lru_cache(maxsize=8)
def _client(endpoint_url: str, region: str, _process_id: int) -> Any:
    """One client for each process: a fork must not share its parent's connections."""
    import boto3

    return boto3.session.Session().client(
        "s3",
        endpoint_url=endpoint_url or None,
        region_name=region or None,
        config=Config(
            connect_timeout=10,
            read_timeout=60,
            retries={"max_attempts": 6, "mode": "standard"},
            max_pool_connections=16,
            request_checksum_calculation="when_required",  # older S3-compatible servers
            response_checksum_validation="when_required",
            s3={"addressing_style": "path" if endpoint_url else "auto"},
        ),
    )


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _md5(content: bytes) -> str:
    """As the Content-MD5 header wants it: against damage on the way, not against malice."""
    return base64.b64encode(hashlib.md5(content, usedforsecurity=False).digest()).decode()

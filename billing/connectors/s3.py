"""Bills in S3 and stores that speak like it: list, manifests, objects in the very state listed."""

import re
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Final

from botocore.exceptions import BotoCoreError, ClientError
from django.utils.translation import gettext as _

from billing.connectors.checking import check_store
from billing.connectors.contract import (
    LIST,
    READ,
    CheckReport,
    Connection,
    ConnectorError,
    JsonObject,
    ObjectRef,
    Unit,
)
from billing.connectors.grouping import Listed, Store, units_of
from billing.connectors.manifests import MAX_MANIFEST_BYTES
from billing.connectors.network import guard_url
from billing.connectors.s3_client import make_client
from billing.connectors.s3_errors import readable

CHUNK_BYTES: Final = 2**20
PAGE_KEYS: Final = 1000
STREAM_TRIES: Final = 4  # a broken stream goes on where it broke, so often
MAX_OBJECTS: Final = 200_000
_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.\-]{1,61}[a-z0-9]")
_REGION: Final = re.compile(r"[a-z0-9-]{2,40}")
_ROLE: Final = re.compile(r"arn:[a-z0-9-]+:iam::\d{12}:role/[\w+=,.@/-]{1,512}")


class S3Connector:
    """A bucket below a prefix, by the machine's role, an assumed role or keys."""

    def __init__(self, connection: Connection) -> None:
        settings = connection.settings
        self._connection = connection
        self.bucket = str(settings.get("bucket") or "")
        self.prefix = str(settings.get("prefix") or "").lstrip("/")
        self.endpoint_url = str(settings.get("endpoint_url") or "")
        if not _BUCKET.fullmatch(self.bucket):
            raise ConnectorError("settings", _("Give the name of a bucket."))
        region, role = str(settings.get("region") or ""), str(settings.get("role_arn") or "")
        if region and not _REGION.fullmatch(region):
            raise ConnectorError("settings", _("The region must be one like us-east-1."))
        if role and not _ROLE.fullmatch(role):
            raise ConnectorError(
                "settings", _("The role must be one like arn:aws:iam::123456789012:role/bills.")
            )

    def check(self) -> CheckReport:
        """Reach, list, read a manifest, read an object."""
        return check_store(self)

    def reach(self) -> None:
        """Ask for at most one key: whatever is wrong before a listing shows."""
        try:
            self._list_page("", keys=1)
        except ConnectorError as error:
            if error.code != "access_denied":  # the store was reached; listing says the rest
                raise

    def listing(self) -> list[Listed]:
        """Every object below the prefix; the whole listing or an error."""
        found: list[Listed] = []
        token = ""
        while True:
            page = self._list_page(token)
            found += [_listed(item) for item in page.get("Contents", ())]
            if len(found) > MAX_OBJECTS:
                raise ConnectorError(
                    "settings",
                    _(
                        "There are more than {count} objects below the prefix; give a longer one."
                    ).format(count=MAX_OBJECTS),
                )
            if not page.get("IsTruncated"):
                return found
            following = str(page.get("NextContinuationToken") or "")
            if not following or following == token:
                raise ConnectorError("listing", _("The store broke its listing off."))
            token = following

    def units(self, watermark: JsonObject) -> Iterator[Unit]:
        """Every unit below the prefix; the watermark is not needed, fingerprints are."""
        yield from units_of(self.listing(), self.store())

    def store(self) -> Store:
        """What grouping must know of this bucket."""
        return Store(place=self.bucket, read=self.read_small, now=datetime.now(UTC))

    def read_small(self, listed: Listed) -> bytes:
        """A manifest's bytes."""
        if listed.size > MAX_MANIFEST_BYTES:
            raise ConnectorError("manifest", _("the manifest is too large"), object=listed.key)
        return b"".join(self.open(listed.ref))

    def open(self, object: ObjectRef) -> Iterator[bytes]:
        """The bytes of the object in the state that was listed; a broken stream is taken up."""
        done_bytes, tries = 0, 0
        while True:
            try:
                for chunk in self._stream(object, done_bytes):
                    done_bytes += len(chunk)
                    yield chunk
                break
            except (BotoCoreError, ClientError) as error:
                failure = self._readable(error, READ, object.key)
            tries += 1
            if failure.permanent or tries >= STREAM_TRIES:
                raise failure
        if object.size is not None and done_bytes != object.size:
            raise ConnectorError(
                "size",
                _("{found} bytes came, {expected} were listed").format(
                    found=done_bytes, expected=object.size
                ),
                object=object.key,
            )

    def _stream(self, object: ObjectRef, start: int) -> Iterator[bytes]:
        wish: dict[str, Any] = {"Bucket": self.bucket, "Key": object.key}
        if object.etag:
            wish["IfMatch"] = object.etag
        if start and start == object.size:
            return
        if start:
            wish["Range"] = f"bytes={start}-"
        answer = self._client.get_object(**wish)
        total = start + int(answer["ContentLength"])
        if object.size is not None and total != object.size:
            answer["Body"].close()
            raise ConnectorError(
                "size",
                _("the object has {found} bytes, {expected} were listed").format(
                    found=total, expected=object.size
                ),
                object=object.key,
            )
        if object.etag and answer.get("ETag", object.etag) != object.etag:
            answer["Body"].close()
            raise ConnectorError(
                "changed", _("the object was replaced meanwhile"), object=object.key
            )
        with closing(answer["Body"]) as body:
            yield from body.iter_chunks(CHUNK_BYTES)

    def _list_page(self, token: str, *, keys: int | None = None) -> dict[str, Any]:
        wish: dict[str, Any] = {
            "Bucket": self.bucket,
            "Prefix": self.prefix,
            "MaxKeys": keys or PAGE_KEYS,
        }
        if token:
            wish["ContinuationToken"] = token
        try:
            page: dict[str, Any] = self._client.list_objects_v2(**wish)
        except (BotoCoreError, ClientError) as error:
            raise self._readable(error, LIST) from error
        return page

    def encryption_key(self, key: str) -> str | None:
        """Which key of KMS an object is encrypted with, where the store tells."""
        try:
            head = self._client.head_object(Bucket=self.bucket, Key=key)
        except (BotoCoreError, ClientError):
            return None
        is_kms = str(head.get("ServerSideEncryption", "")).startswith("aws:kms")
        return str(head.get("SSEKMSKeyId") or "*") if is_kms else None

    def _readable(
        self, error: BotoCoreError | ClientError, step: str, key: str = ""
    ) -> ConnectorError:
        found = readable(error, step=step, bucket=self.bucket, prefix=self.prefix, key=key)
        if found.missing_permission == "sts:AssumeRole":
            found.missing_permission += f" on {self._connection.settings['role_arn']}"
        if found.code == "access_denied" and step == READ and not found.missing_permission:
            kms = self.encryption_key(key)
            found.missing_permission = (
                f"kms:Decrypt on {kms}"
                if kms
                else f"s3:GetObject on arn:aws:s3:::{self.bucket}/{self.prefix}*"
            )
        return found

    @cached_property
    def _client(self) -> Any:
        if self.endpoint_url:
            guard_url(self.endpoint_url, self._connection.allowed.hosts)
        try:
            return make_client(self._connection)
        except (BotoCoreError, ValueError) as error:
            raise ConnectorError("settings", str(error)[:300]) from error


def _listed(item: dict[str, Any]) -> Listed:
    return Listed(
        key=item["Key"],
        size=int(item["Size"]),
        etag=str(item.get("ETag") or ""),
        modified_at=item.get("LastModified"),
    )

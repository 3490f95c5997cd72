"""File systems of fsspec with our times and tries: which may be opened, with what credential."""

import json
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from django.utils.translation import gettext as _

from billing.connectors.contract import Connection, ConnectorError
from billing.connectors.network import guard_host, guard_url, is_listed

REQUEST_TIMEOUT_S: Final = 120
CONNECT_TIMEOUT_S: Final = 10
TRIES: Final = 4  # of one request to Azure, the first one included; gcsfs makes 6, within 40 s
# Protocols that open this machine or another protocol: never, whatever the operator lists.
NEVER: Final = frozenset(
    {
        *("file", "local", "memory", "dir", "data", "zip", "tar", "libarchive", "reference"),
        *("simplecache", "filecache", "blockcache", "cached", "generic", "asynclocal"),
        *("git", "jlab", "jupyter", "http", "https"),
    }
)
_WITH_HOSTS: Final = frozenset(
    {"sftp", "ssh", "ftp", "smb", "hdfs", "webhdfs", "webdav", "arrow_hdfs"}
)
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{1,221}")
_TENANT: Final = re.compile(r"[A-Za-z0-9.-]{1,100}")
_GOOGLE_TOKEN_URI: Final = "https://oauth2.googleapis.com/token"  # noqa: S105  # an address


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """An opened file system and the folder in it; keys of objects begin at `base`."""

    system: Any
    base: str  # the bucket, the container, or the folder itself
    root: str  # what is listed
    name: str  # what an address in a manifest must name
    has_generations: bool = False

    def key_of(self, path: str) -> str:
        """The key of an object from its path in the file system."""
        return path.removeprefix(self.base).lstrip("/")

    def path_of(self, key: str) -> str:
        """The path in the file system of an object's key."""
        return f"{self.base.rstrip('/')}/{key}"


def open_place(connection: Connection) -> Place:
    """The file system of this connection; its clients make no request yet.

    Raises:
        ConnectorError: a setting cannot be, or the operator does not allow what it asks for.
    """
    build = {"gcs": _google, "azure_blob": _azure}.get(connection.kind, _other)
    try:
        return build(connection)
    except (ValueError, TypeError, ImportError) as error:
        raise ConnectorError(
            "settings",
            _("the store cannot be opened ({name})").format(name=type(error).__name__),
        ) from error


def _bucket(connection: Connection, name: str) -> tuple[str, str]:
    bucket = str(connection.settings.get(name) or "")
    if not _NAME.fullmatch(bucket):
        raise ConnectorError("settings", _("Give the name of the bucket or container."))
    prefix = str(connection.settings.get("prefix") or "").strip("/")
    return bucket, f"{bucket}/{prefix}" if prefix else bucket


def _endpoint(connection: Connection) -> str:
    """An address instead of the provider's own, which the operator must list by its host."""
    url = str(connection.settings.get("endpoint_url") or "").rstrip("/")
    if url:
        listed = connection.allowed.hosts
        guard_url(url, listed)
        if not is_listed(urlsplit(url).hostname or "", listed):
            raise ConnectorError(
                "endpoint",
                _("Another address than the provider's must be listed in COSTWATCH_PRIVATE_HOSTS."),
            )
    return url


def _google(connection: Connection) -> Place:
    import aiohttp
    from gcsfs.core import GCSFileSystem  # not the package's: that one asks a second service

    bucket, root = _bucket(connection, "bucket")
    url = _endpoint(connection)

    system = GCSFileSystem(
        project=str(connection.settings.get("project") or "costwatch"),
        access="read_only",
        token=_google_token(connection),
        endpoint_url=url or None,
        requests_timeout=aiohttp.ClientTimeout(
            total=REQUEST_TIMEOUT_S, sock_connect=CONNECT_TIMEOUT_S
        ),
        skip_instance_cache=True,
        use_listings_cache=False,
    )
    return Place(system=system, base=bucket, root=root, name=bucket, has_generations=True)


def _google_token(connection: Connection) -> Any:
    text = (connection.secret or {}).get("service_account_json")
    if not text:
        return "anon" if connection.settings.get("anonymous") else "google_default"
    try:
        key = json.loads(text)
    except ValueError as error:
        raise ConnectorError(
            "credentials", _("The key of the service account is no JSON.")
        ) from error
    # Other kinds may name a program to run or an address to ask.
    if not isinstance(key, dict) or key.get("type") != "service_account":
        raise ConnectorError("credentials", _("Give the JSON key of a service account."))
    if key.get("token_uri") != _GOOGLE_TOKEN_URI:
        host = urlsplit(str(key.get("token_uri"))).hostname or ""
        if not is_listed(host, connection.allowed.hosts):
            raise ConnectorError(
                "credentials", _("The key of the service account names another token_uri.")
            )
    return key


def _azure(connection: Connection) -> Place:
    from adlfs import AzureBlobFileSystem
    from azure.storage.blob.aio import BlobServiceClient

    account = str(connection.settings.get("account_name") or "")
    if not re.fullmatch(r"[a-z0-9]{3,24}", account):
        raise ConnectorError("settings", _("Give the name of the storage account."))
    container, root = _bucket(connection, "container")
    url = _endpoint(connection) or f"https://{account}.blob.core.windows.net"
    secret = connection.secret or {}

    class Azure(AzureBlobFileSystem):
        def do_connect(self) -> None:
            key: Any = self.credential or self.sas_token
            if self.account_key:
                key = {"account_name": account, "account_key": self.account_key}
            self.service_client = BlobServiceClient(
                url,
                credential=key,
                retry_total=TRIES - 1,
                initial_backoff=1,
                increment_base=2,
                connection_timeout=CONNECT_TIMEOUT_S,
                read_timeout=REQUEST_TIMEOUT_S,
            )

    system = Azure(
        account_name=account,
        anon=bool(connection.settings.get("anonymous")) and not secret,
        skip_instance_cache=True,
        use_listings_cache=False,
        **_azure_credential(secret),
    )
    return Place(system=system, base=container, root=root, name=container)


def _azure_credential(secret: Mapping[str, Any]) -> dict[str, str]:
    if secret.get("tenant_id") and not _TENANT.fullmatch(str(secret["tenant_id"])):
        raise ConnectorError("credentials", _("The tenant must be an id or a domain."))
    names = ("account_key", "sas_token", "client_id", "client_secret", "tenant_id")
    return {name: str(secret[name]) for name in names if secret.get(name)}


def _other(connection: Connection) -> Place:
    from fsspec.core import url_to_fs

    url = str(connection.settings.get("url") or "")
    protocol = url.partition("://")[0].lower()
    if "::" in url or "://" not in url or not url.isprintable():
        raise ConnectorError("settings", _("Give an address such as sftp://host/folder."))
    if protocol in NEVER or protocol not in connection.allowed.protocols:
        raise ConnectorError(
            "settings",
            _(
                "The operator of this installation does not list {protocol} in "
                "COSTWATCH_STORE_PROTOCOLS."
            ).format(protocol=protocol),
        )
    options = dict(connection.settings.get("options") or {}) | dict(connection.secret or {})
    _guard_options(url, protocol, options, connection)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        system, root = url_to_fs(url, skip_instance_cache=True, use_listings_cache=False, **options)
    return Place(system=system, base=root, root=root, name=urlsplit(url).netloc)


def _guard_options(
    url: str, protocol: str, options: Mapping[str, Any], connection: Connection
) -> None:
    """Look at every address that the file system could be led to.

    Raises:
        ConnectorError: one is private and not listed, or an option opens another file system.
    """
    listed = connection.allowed.hosts
    host = urlsplit(url).hostname
    if protocol in _WITH_HOSTS and host:
        guard_host(host, port=None, listed=listed)
    for name, value in options.items():
        if name in ("fo", "fs", "target_protocol", "target_options", "protocol", "loop"):
            raise ConnectorError(
                "settings", _("The option {name} is not for a source of bills.").format(name=name)
            )
        if isinstance(value, dict | list):
            raise ConnectorError(
                "settings", _("The option {name} must be one plain value.").format(name=name)
            )
        if isinstance(value, str) and "://" in value:
            guard_url(value, listed)
        elif isinstance(value, str) and ("host" in name or "endpoint" in name):
            guard_host(value.partition(":")[0], port=None, listed=listed)

"""The client of S3 with its times and tries, and the way to an assumed role. No requests here."""

from typing import Any, Final

import boto3
import botocore.session
from botocore.awsrequest import AWSHTTPConnectionPool, AWSHTTPSConnectionPool
from botocore.config import Config
from botocore.credentials import (
    AssumeRoleCredentialFetcher,
    Credentials,
    DeferredRefreshableCredentials,
)

from billing.connectors.contract import Connection
from billing.connectors.network import guarded

CONNECT_TIMEOUT_S: Final = 10
READ_TIMEOUT_S: Final = 60
TRIES: Final = 5  # of one request, the first one included; waits double from under 1 s to 20 s
SESSION_NAME: Final = "costwatch"


def make_client(connection: Connection) -> Any:
    """A client of the store; credentials are looked for when the first request is made."""
    settings, secret = connection.settings, connection.secret or {}
    session = botocore.session.Session()
    if region := settings.get("region"):
        session.set_config_variable("region", region)
    if secret.get("access_key_id"):
        session.set_credentials(
            secret["access_key_id"],
            secret.get("secret_access_key", ""),
            secret.get("session_token") or None,
        )
    if role := settings.get("role_arn"):
        session = _with_role(session, connection, str(role))
    client = _client(session, connection, "s3")
    if settings.get("endpoint_url"):
        _guard(client, connection)
    return client


def _client(session: botocore.session.Session, connection: Connection, service: str) -> Any:
    endpoint_url = connection.settings.get("endpoint_url") or None
    return boto3.Session(botocore_session=session).client(
        service,
        endpoint_url=endpoint_url,
        region_name=connection.settings.get("region")
        or session.get_config_variable("region")
        or "us-east-1",
        config=Config(
            connect_timeout=CONNECT_TIMEOUT_S,
            read_timeout=READ_TIMEOUT_S,
            retries={"mode": "standard", "total_max_attempts": TRIES},
            proxies={} if endpoint_url else None,
            s3={"addressing_style": "path"} if endpoint_url else {},
            user_agent_extra="costwatch",
        ),
    )


def _with_role(
    session: botocore.session.Session, connection: Connection, role: str
) -> botocore.session.Session:
    """A session of the role, renewed by itself while a long pull goes on."""
    extra = {"RoleSessionName": SESSION_NAME}
    if external_id := connection.settings.get("external_id"):
        extra["ExternalId"] = str(external_id)

    def sts(*_names: str, **_credentials: str | None) -> Any:
        client = _client(session, connection, "sts")
        if connection.settings.get("endpoint_url"):
            _guard(client, connection)
        return client

    fetcher = AssumeRoleCredentialFetcher(
        client_creator=sts,
        source_credentials=session.get_credentials() or Credentials("", ""),
        role_arn=role,
        extra_args=extra,
    )
    assumed = botocore.session.Session()
    if region := session.get_config_variable("region"):
        assumed.set_config_variable("region", region)
    assumed._credentials = DeferredRefreshableCredentials(
        method="assume-role", refresh_using=fetcher.fetch_credentials
    )
    return assumed


def _guard(client: Any, connection: Connection) -> None:
    """Have every connection of the client look at the address where it ends."""
    listed = connection.allowed.hosts
    pools = {}
    for scheme, pool in (("http", AWSHTTPConnectionPool), ("https", AWSHTTPSConnectionPool)):
        pools[scheme] = type(
            f"Guarded{pool.__name__}",
            (pool,),
            {"ConnectionCls": guarded(pool.ConnectionCls, listed)},
        )
    client._endpoint.http_session._manager.pool_classes_by_scheme = pools

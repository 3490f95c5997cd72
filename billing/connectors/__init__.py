"""Stores that bills are pulled from, one file each; each is opened by its kind. No tables here."""

from importlib import import_module
from typing import Final

from django.utils.translation import gettext as _

from billing.connectors.contract import (
    Allowed,
    CheckReport,
    CheckStep,
    Connection,
    Connector,
    ConnectorError,
    ObjectRef,
    StatedTotal,
    Unit,
)

# Imported when first used: the providers' libraries are large.
CONNECTORS: Final = {
    "s3": ("billing.connectors.s3", "S3Connector"),
    "bigquery": ("billing.connectors.bigquery", "BigQueryConnector"),
    "gcs": ("billing.connectors.stores", "StoreConnector"),
    "azure_blob": ("billing.connectors.stores", "StoreConnector"),
    "fsspec": ("billing.connectors.stores", "StoreConnector"),
    "folder": ("billing.connectors.folder", "FolderConnector"),
}


def connector_for(connection: Connection) -> Connector:
    """The connector of this kind, built as `Class(connection)`; nothing is reached yet.

    Raises:
        ConnectorError: no connector of this kind, or its settings cannot be.
    """
    if connection.kind not in CONNECTORS:
        raise ConnectorError("settings", _("Nothing can be pulled from this kind of source."))
    module, name = CONNECTORS[connection.kind]
    built: Connector = getattr(import_module(module), name)(connection)
    return built


__all__ = [
    "CONNECTORS",
    "Allowed",
    "CheckReport",
    "CheckStep",
    "Connection",
    "Connector",
    "ConnectorError",
    "ObjectRef",
    "StatedTotal",
    "Unit",
    "connector_for",
]

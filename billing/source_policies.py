"""The least that a provider must grant for a connection, ready to be pasted. Grants nothing."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.utils.translation import gettext as _

Settings = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """One thing to paste: where, and what."""

    key: str
    title: str
    help_text: str
    text: str


def policies_for(kind: str, settings: Settings) -> list[Policy]:
    """What to grant for this connection, filled in."""
    build = _BUILDERS.get(kind)
    return build(settings) if build is not None else []


def _value(settings: Settings, name: str, otherwise: str) -> str:
    return str(settings.get(name) or otherwise)


def _s3(settings: Settings) -> list[Policy]:
    bucket = _value(settings, "bucket", "BUCKET")
    prefix = str(settings.get("prefix") or "").strip("/")
    below = f"{prefix}/" if prefix else ""
    listing: dict[str, Any] = {
        "Sid": "ListTheExport",
        "Effect": "Allow",
        "Action": "s3:ListBucket",
        "Resource": f"arn:aws:s3:::{bucket}",
    }
    if prefix:
        listing["Condition"] = {"StringLike": {"s3:prefix": [prefix, f"{prefix}/*"]}}
    reading = {
        "Sid": "ReadTheExport",
        "Effect": "Allow",
        "Action": "s3:GetObject",
        "Resource": f"arn:aws:s3:::{bucket}/{below}*",
    }
    found = [
        Policy(
            key="s3-read",
            title=_("Permissions policy"),
            help_text=_("For the role or user that reads the bucket: list it, read it, no more."),
            text=_document(listing, reading),
        ),
        Policy(
            key="s3-kms",
            title=_("Where the bucket is encrypted with a key of KMS"),
            help_text=_("Add this statement, with the ARN of your key."),
            text=_document(_decrypting(settings, bucket)),
        ),
    ]
    if settings.get("role_arn"):
        found.append(_trust(settings))
    return found


def _decrypting(settings: Settings, bucket: str) -> dict[str, Any]:
    region = _value(settings, "region", "*")
    return {
        "Sid": "DecryptTheExport",
        "Effect": "Allow",
        "Action": "kms:Decrypt",
        "Resource": "arn:aws:kms:REGION:ACCOUNT:key/KEY-ID",
        "Condition": {
            "StringLike": {
                "kms:ViaService": f"s3.{region}.amazonaws.com",
                "kms:EncryptionContext:aws:s3:arn": f"arn:aws:s3:::{bucket}*",
            }
        },
    }


def _trust(settings: Settings) -> Policy:
    statement: dict[str, Any] = {
        "Sid": "LetCostwatchTakeTheRole",
        "Effect": "Allow",
        "Principal": {"AWS": "ARN-OF-THE-ROLE-THAT-COSTWATCH-RUNS-WITH"},
        "Action": "sts:AssumeRole",
    }
    if settings.get("external_id"):
        statement["Condition"] = {"StringEquals": {"sts:ExternalId": settings["external_id"]}}
    return Policy(
        key="s3-trust",
        title=_("Trust policy of the role"),
        help_text=_("So that Costwatch may take {role}.").format(role=settings["role_arn"]),
        text=_document(statement),
    )


def _document(*statements: Mapping[str, Any]) -> str:
    return json.dumps({"Version": "2012-10-17", "Statement": list(statements)}, indent=2)


def _bigquery(settings: Settings) -> list[Policy]:
    project = _value(settings, "project", "PROJECT")
    home, _dot, dataset = _value(settings, "dataset", "DATASET").rpartition(".")
    home = home or project
    account = _value(settings, "impersonate", f"costwatch@{project}.iam.gserviceaccount.com")
    table = str(settings.get("table") or "")
    on_table = (
        f"GRANT `roles/bigquery.dataViewer`\nON TABLE `{home}.{dataset}.{table}`\n"
        f'TO "serviceAccount:{account}";'
    )
    on_dataset = (
        f"GRANT `roles/bigquery.dataViewer`\nON SCHEMA `{home}.{dataset}`\n"
        f'TO "serviceAccount:{account}";'
    )
    run = (
        f"gcloud projects add-iam-policy-binding {project} \\\n"
        f"  --member='serviceAccount:{account}' \\\n"
        "  --role='roles/bigquery.jobUser' --condition=None"
    )
    found = [
        Policy(
            key="bigquery-run",
            title=_("Run queries"),
            help_text=_("Gives bigquery.jobs.create in the project that runs the queries."),
            text=run,
        ),
        Policy(
            key="bigquery-read",
            title=_("Read the table") if table else _("Read the dataset"),
            help_text=_(
                "Gives bigquery.tables.get and bigquery.tables.getData; run it as a query. Without "
                "the table's name the dataset must be listed too."
            ),
            text=on_table if table else on_dataset,
        ),
    ]
    if settings.get("impersonate"):
        found.append(_impersonation(account))
    return found


def _impersonation(account: str) -> Policy:
    return Policy(
        key="bigquery-impersonate",
        title=_("Act as the service account"),
        help_text=_("For the identity that Costwatch runs with."),
        text=(
            f"gcloud iam service-accounts add-iam-policy-binding {account} \\\n"
            "  --member='serviceAccount:IDENTITY-OF-COSTWATCH' \\\n"
            "  --role='roles/iam.serviceAccountTokenCreator'"
        ),
    )


def _gcs(settings: Settings) -> list[Policy]:
    bucket = _value(settings, "bucket", "BUCKET")
    prefix = str(settings.get("prefix") or "").strip("/")
    condition = " --condition=None"
    if prefix:
        objects = f"projects/_/buckets/{bucket}/objects/{prefix}/"
        not_an_object = 'resource.type != "storage.googleapis.com/Object"'
        condition = (
            f" \\\n  --condition='title=bills,expression={not_an_object} || "
            f'resource.name.startsWith("{objects}")\''
        )
    text = (
        f"gcloud storage buckets add-iam-policy-binding gs://{bucket} \\\n"
        "  --member='serviceAccount:ACCOUNT' \\\n"
        f"  --role='roles/storage.objectViewer'{condition}"
    )
    return [
        Policy(
            key="gcs-read",
            title=_("Read the bucket"),
            help_text=_("Gives storage.objects.list and storage.objects.get, no more."),
            text=text,
        )
    ]


def _azure(settings: Settings) -> list[Policy]:
    account = _value(settings, "account_name", "ACCOUNT")
    container = _value(settings, "container", "CONTAINER")
    text = (
        "az role assignment create \\\n"
        "  --assignee OBJECT-ID-OF-THE-IDENTITY \\\n"
        '  --role "Storage Blob Data Reader" \\\n'
        '  --scope "/subscriptions/SUBSCRIPTION/resourceGroups/GROUP/providers/'
        f'Microsoft.Storage/storageAccounts/{account}/blobServices/default/containers/{container}"'
    )
    return [
        Policy(
            key="azure-read",
            title=_("Role assignment"),
            help_text=_("Reading this one container, no more."),
            text=text,
        )
    ]


def _folder(settings: Settings) -> list[Policy]:
    path = _value(settings, "path", "/PATH")
    return [
        Policy(
            key="folder-read",
            title=_("Read the folder"),
            help_text=_("Costwatch reads and lists; it never writes into the folder."),
            text=f"setfacl -R -m u:costwatch:rX -m d:u:costwatch:rX {json.dumps(path)}",
        )
    ]


_BUILDERS: Final[Mapping[str, Callable[[Settings], list[Policy]]]] = {
    "s3": _s3,
    "bigquery": _bigquery,
    "gcs": _gcs,
    "azure_blob": _azure,
    "folder": _folder,
}

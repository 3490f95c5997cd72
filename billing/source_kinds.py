"""What each kind of pulled source asks of people: where it lies, which credential it holds."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.utils.translation import gettext_lazy as _

if TYPE_CHECKING:
    from django.utils.functional import _StrPromise

    Words = str | _StrPromise

TEXT: Final = "text"
NUMBER: Final = "number"
OPTIONS: Final = "options"  # name=value, one a line
LONG: Final = "long"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceField:
    """One thing to fill in."""

    name: str
    label: "Words"
    help_text: "Words" = ""
    required: bool = False
    shape: str = TEXT
    is_advanced: bool = False
    leads_elsewhere: bool = False  # a changed one could send the stored credential to a stranger


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceKind:
    """One kind of store: its fields, its credential, and how to do without one."""

    key: str
    icon: str
    name: "Words"
    summary: "Words"
    fields: tuple[SourceField, ...]
    secret_fields: tuple[SourceField, ...] = ()
    without_secret: "Words" = ""

    @property
    def field_names(self) -> frozenset[str]:
        """What a connection of this kind may say."""
        return frozenset(field.name for field in self.fields)


_ENDPOINT: Final = SourceField(
    name="endpoint_url",
    label=_("Address of the service"),
    help_text=_("Only for another service than the provider's own."),
    is_advanced=True,
    leads_elsewhere=True,
)
_PREFIX: Final = SourceField(
    name="prefix",
    label=_("Folder in it"),
    help_text=_("The path that the export writes below, such as exports/costs."),
)
_SERVICE_ACCOUNT: Final = SourceField(
    name="service_account_json",
    label=_("JSON key of a service account"),
    help_text=_("The whole file that Google gave you."),
    shape=LONG,
)

_S3: Final = SourceKind(
    key="s3",
    icon="archive-box",
    name=_("Amazon S3"),
    summary=_("AWS Data Exports and CUR, or any export in a bucket that speaks S3."),
    fields=(
        SourceField(name="bucket", label=_("Bucket"), required=True),
        _PREFIX,
        SourceField(name="region", label=_("Region"), help_text=_("Such as us-east-1.")),
        SourceField(
            name="role_arn",
            label=_("Role to take"),
            help_text=_("Such as arn:aws:iam::123456789012:role/costwatch-bills. Empty: as it is."),
        ),
        SourceField(
            name="external_id",
            label=_("External ID of the role"),
            help_text=_("As the trust policy of the role asks for it."),
        ),
        _ENDPOINT,
    ),
    secret_fields=(
        SourceField(name="access_key_id", label=_("Access key ID")),
        SourceField(name="secret_access_key", label=_("Secret access key")),
        SourceField(name="session_token", label=_("Session token"), is_advanced=True),
    ),
    without_secret=_(
        "Best: run Costwatch with an instance role, a task role or IRSA, and let it take the role "
        "named above. Then nothing needs to be stored here."
    ),
)
_BIGQUERY: Final = SourceKind(
    key="bigquery",
    icon="table-cells",
    name=_("Google BigQuery"),
    summary=_("Google Cloud's billing export: standard, detailed or FOCUS."),
    fields=(
        SourceField(
            name="project",
            label=_("Project that runs the queries"),
            required=True,
            help_text=_("Queries are billed to it."),
        ),
        SourceField(
            name="dataset",
            label=_("Dataset of the export"),
            required=True,
            help_text=_("Such as billing-project.billing_export."),
        ),
        SourceField(
            name="table",
            label=_("Table or view"),
            help_text=_("Empty: the only billing export in the dataset."),
        ),
        SourceField(name="from_month", label=_("From the month"), help_text=_("Such as 2026-01.")),
        SourceField(
            name="max_query_gb",
            label=_("Largest query, in GB"),
            shape=NUMBER,
            help_text=_("A query that would read more is not run. Without a word: 200."),
        ),
        SourceField(
            name="trailing_days",
            label=_("Days looked at again"),
            shape=NUMBER,
            is_advanced=True,
            help_text=_("Months that touch them are looked at in each pull. Without a word: 90."),
        ),
        SourceField(
            name="lookback_days",
            label=_("Days of usage before a month"),
            shape=NUMBER,
            is_advanced=True,
            help_text=_(
                "How old usage may be that a month corrects. Without a word: 400; 0: any age."
            ),
        ),
        SourceField(
            name="impersonate",
            label=_("Service account to act as"),
            is_advanced=True,
            help_text=_("Such as costwatch@project.iam.gserviceaccount.com."),
        ),
        _ENDPOINT,
    ),
    secret_fields=(_SERVICE_ACCOUNT,),
    without_secret=_(
        "Best: run Costwatch with a service account of Google Cloud or with workload identity "
        "federation. Then nothing needs to be stored here."
    ),
)
_GCS: Final = SourceKind(
    key="gcs",
    icon="cloud",
    name=_("Google Cloud Storage"),
    summary=_("Any export as files in a bucket of Google Cloud."),
    fields=(
        SourceField(name="bucket", label=_("Bucket"), required=True),
        _PREFIX,
        _ENDPOINT,
    ),
    secret_fields=(_SERVICE_ACCOUNT,),
    without_secret=_BIGQUERY.without_secret,
)
_AZURE: Final = SourceKind(
    key="azure_blob",
    icon="cube",
    name=_("Azure Blob Storage"),
    summary=_("Cost Management exports, actual and amortised, and FOCUS."),
    fields=(
        SourceField(
            name="account_name",
            label=_("Storage account"),
            required=True,
            leads_elsewhere=True,
        ),
        SourceField(name="container", label=_("Container"), required=True),
        _PREFIX,
        _ENDPOINT,
    ),
    secret_fields=(
        SourceField(name="tenant_id", label=_("Tenant ID")),
        SourceField(name="client_id", label=_("Client ID")),
        SourceField(name="client_secret", label=_("Client secret")),
        SourceField(name="sas_token", label=_("SAS token"), is_advanced=True),
        SourceField(name="account_key", label=_("Account key"), is_advanced=True),
    ),
    without_secret=_(
        "Best: run Costwatch with a managed identity or workload identity. Then nothing needs to "
        "be stored here."
    ),
)
_FOLDER: Final = SourceKind(
    key="folder",
    icon="folder-open",
    name=_("Watched folder"),
    summary=_("A folder of this server into which something else puts the exports."),
    fields=(
        SourceField(
            name="path",
            label=_("Path"),
            required=True,
            help_text=_("Below a folder that COSTWATCH_WATCHED_FOLDERS lists."),
        ),
        SourceField(
            name="settle_s",
            label=_("Seconds of rest"),
            shape=NUMBER,
            is_advanced=True,
            help_text=_("A file that was touched more lately may still be on its way."),
        ),
    ),
)
_FSSPEC: Final = SourceKind(
    key="fsspec",
    icon="server-stack",
    name=_("Other file store"),
    summary=_("Whatever fsspec opens and COSTWATCH_STORE_PROTOCOLS lists, such as SFTP."),
    fields=(
        SourceField(
            name="url",
            label=_("Address"),
            required=True,
            help_text=_("Such as sftp://host/folder."),
            leads_elsewhere=True,
        ),
        SourceField(
            name="options",
            label=_("Options"),
            shape=OPTIONS,
            is_advanced=True,
            help_text=_("name=value, one a line, as fsspec calls them. No credentials here."),
            leads_elsewhere=True,
        ),
    ),
    secret_fields=(
        SourceField(name="username", label=_("User name")),
        SourceField(name="password", label=_("Password")),
        SourceField(name="token", label=_("Token"), is_advanced=True),
        SourceField(name="key", label=_("Key"), is_advanced=True),
        SourceField(name="secret", label=_("Secret of the key"), is_advanced=True),
    ),
)

SOURCE_KINDS: Final = {kind.key: kind for kind in (_S3, _BIGQUERY, _GCS, _AZURE, _FOLDER, _FSSPEC)}
# 0: only when somebody asks.
SCHEDULES: Final = {
    0: _("Only by hand"),
    1: _("Every hour"),
    3: _("Every 3 hours"),
    6: _("Every 6 hours"),
    12: _("Every 12 hours"),
    24: _("Once a day"),
}
FORMAT_NAMES: Final = {
    "auto": _("Told by its columns"),
    "focus": _("FOCUS"),
    "aws-cur": _("AWS Cost and Usage Report"),
    "gcp-export": _("Google Cloud billing export"),
    "azure-actual": _("Azure cost export, actual costs"),
    "azure-amortised": _("Azure cost export, amortised costs"),
    "mapped": _("CSV by a mapping of columns"),
}

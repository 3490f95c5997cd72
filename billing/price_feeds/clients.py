"""Opens the providers' clients with the credentials of the place where Costwatch runs."""

from typing import Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError
from django.utils.translation import gettext as _
from google.api_core.client_options import ClientOptions
from google.auth import exceptions as auth_errors
from google.cloud.billing_v1 import CloudCatalogClient

from billing.price_feeds.aws import AwsPriceFeed
from billing.price_feeds.contract import FEED_NAMES, PriceFeed, PriceFeedError
from billing.price_feeds.gcp import GcpPriceFeed

# The price list has few endpoints, and each knows all regions.
AWS_PRICING_REGION: Final = "us-east-1"


def feed_of(provider: str, *, gcp_endpoint: str = "", gcp_api_key: str = "") -> PriceFeed:
    """The reader of a provider's price list.

    Without an API key Google's client finds its own credentials; AWS's always does.

    Raises:
        PriceFeedError: no such feed, or no credentials.
    """
    if provider == "aws":
        return AwsPriceFeed(client=_aws_client())
    if provider == "gcp":
        return GcpPriceFeed(client=_gcp_client(gcp_endpoint, gcp_api_key))
    raise PriceFeedError(
        "unknown_feed",
        _("There is no price feed {name}; choose {names}.").format(
            name=repr(provider), names=", ".join(FEED_NAMES)
        ),
        is_permanent=True,
    )


def _aws_client() -> Any:
    config = Config(
        connect_timeout=10,
        read_timeout=60,
        retries={"mode": "standard", "total_max_attempts": 5},
        user_agent_extra="costwatch",
    )
    try:
        session = boto3.session.Session()  # of its own: the shared one keeps old credentials
        return session.client("pricing", region_name=AWS_PRICING_REGION, config=config)
    except BotoCoreError as error:
        raise PriceFeedError("bad_settings", str(error), is_permanent=True) from error


def _gcp_client(endpoint: str, api_key: str) -> Any:
    options = ClientOptions(api_endpoint=endpoint or None, api_key=api_key or None)
    try:
        return CloudCatalogClient(transport="rest", client_options=options)
    except auth_errors.GoogleAuthError as error:
        raise PriceFeedError(
            "no_credentials",
            _(
                "No Google Cloud credentials were found: give web and worker Application Default "
                "Credentials, or an API key in COSTWATCH_CLOUD_BILLING_API_KEY."
            ),
            is_permanent=True,
        ) from error

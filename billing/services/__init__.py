"""Writes of charges: receive, stage, publish, confirm, allocate, roll up, sweep; of prices and
exchange rates: add, import, withdraw.
"""

from billing.services.allocation import RulesChangedError, replace_rules
from billing.services.exchange_rates import (
    add_exchange_rate,
    add_exchange_rates,
    import_exchange_rates,
    withdraw_exchange_rate,
)
from billing.services.locking import TooManyUploadsError, upload_slot
from billing.services.price_feeds import (
    Refreshed,
    ask_for_all_refreshes,
    ask_for_refresh,
    connect_price_feed,
    disconnect_price_feed,
    refresh_price_book,
    refresh_prices,
)
from billing.services.prices import (
    add_price,
    add_prices,
    ensure_price_book,
    import_prices,
    withdraw_price,
)
from billing.services.publishing import add_delivery, confirm_delivery, decline_delivery
from billing.services.pull_requests import (
    ask_for_due_pulls,
    ask_for_pull,
    connection_of,
    due_pulls,
)
from billing.services.pulling import pull_source
from billing.services.receiving import (
    IncomingFile,
    NewDelivery,
    Receipt,
    ensure_source,
    receive_files,
)
from billing.services.repricing import reprice_estimated
from billing.services.rollups import rebuild_daily_costs
from billing.services.secrets import forget_secret, open_secret, rotate_secrets, set_secret
from billing.services.source_tests import ask_for_test, test_source
from billing.services.sources import SourceWish, change_source, connect_source, pause_source
from billing.services.staging import stage_delivery
from billing.services.sweeping import sweep_lake

__all__ = [
    "IncomingFile",
    "NewDelivery",
    "Receipt",
    "Refreshed",
    "RulesChangedError",
    "SourceWish",
    "TooManyUploadsError",
    "add_delivery",
    "add_exchange_rate",
    "add_exchange_rates",
    "add_price",
    "add_prices",
    "ask_for_all_refreshes",
    "ask_for_due_pulls",
    "ask_for_pull",
    "ask_for_refresh",
    "ask_for_test",
    "change_source",
    "confirm_delivery",
    "connect_price_feed",
    "connect_source",
    "connection_of",
    "decline_delivery",
    "disconnect_price_feed",
    "due_pulls",
    "ensure_price_book",
    "ensure_source",
    "forget_secret",
    "import_exchange_rates",
    "import_prices",
    "open_secret",
    "pause_source",
    "pull_source",
    "rebuild_daily_costs",
    "receive_files",
    "refresh_price_book",
    "refresh_prices",
    "replace_rules",
    "reprice_estimated",
    "rotate_secrets",
    "set_secret",
    "stage_delivery",
    "sweep_lake",
    "test_source",
    "upload_slot",
    "withdraw_exchange_rate",
    "withdraw_price",
]

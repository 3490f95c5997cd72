"""Writes of charges: receive, stage, publish, confirm, allocate, roll up, sweep; of prices and
exchange rates: add, import, withdraw.
"""

from billing.services.allocation import RuleWish, add_rule, remove_rule, replace_rules
from billing.services.exchange_rates import (
    add_exchange_rate,
    add_exchange_rates,
    import_exchange_rates,
    withdraw_exchange_rate,
)
from billing.services.prices import (
    add_price,
    add_prices,
    ensure_price_book,
    import_prices,
    withdraw_price,
)
from billing.services.publishing import confirm_delivery, decline_delivery
from billing.services.receiving import (
    IncomingFile,
    NewDelivery,
    Receipt,
    ensure_source,
    receive_files,
)
from billing.services.rollups import rebuild_daily_costs
from billing.services.staging import stage_delivery
from billing.services.sweeping import sweep_lake

__all__ = [
    "IncomingFile",
    "NewDelivery",
    "Receipt",
    "RuleWish",
    "add_exchange_rate",
    "add_exchange_rates",
    "add_price",
    "add_prices",
    "add_rule",
    "confirm_delivery",
    "decline_delivery",
    "ensure_price_book",
    "ensure_source",
    "import_exchange_rates",
    "import_prices",
    "rebuild_daily_costs",
    "receive_files",
    "remove_rule",
    "replace_rules",
    "stage_delivery",
    "sweep_lake",
    "withdraw_exchange_rate",
    "withdraw_price",
]

"""Writes of charges: receive, stage, publish, confirm, allocate, roll up, sweep."""

from billing.services.allocation import RuleWish, add_rule, remove_rule, replace_rules
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
    "add_rule",
    "confirm_delivery",
    "decline_delivery",
    "ensure_source",
    "rebuild_daily_costs",
    "receive_files",
    "remove_rule",
    "replace_rules",
    "stage_delivery",
    "sweep_lake",
]

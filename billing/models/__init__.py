"""Tables of charges, their allocation and roll-up, pulled sources, invoices, prices and rates."""

from billing.models.allocation import AllocationRule, AllocationTarget, RuleSet
from billing.models.charges import (
    BillingPeriod,
    ChargeSlice,
    Delivery,
    DeliveryFile,
    PeriodVersion,
    Source,
)
from billing.models.daily import DailyCost
from billing.models.invoices import InvoiceTotal
from billing.models.prices import ExchangeRate, Price, PriceBook
from billing.models.pulling import Pull, PulledUnit, SourceSecret

__all__ = [
    "AllocationRule",
    "AllocationTarget",
    "BillingPeriod",
    "ChargeSlice",
    "DailyCost",
    "Delivery",
    "DeliveryFile",
    "ExchangeRate",
    "InvoiceTotal",
    "PeriodVersion",
    "Price",
    "PriceBook",
    "Pull",
    "PulledUnit",
    "RuleSet",
    "Source",
    "SourceSecret",
]

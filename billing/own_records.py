"""What billing takes to charge own hardware: metered hours and kWh as plain records, a rate card.

Billing knows no meter and no kWh of its own: planning hands the records in.
"""

from dataclasses import dataclass
from datetime import date
from decimal import Decimal

PROVIDER = "Own hardware"
SERVICE = "Own hardware"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeteredDay:
    """A device's day as metered. Missing energy stays missing: its electricity has no cost then."""

    day: date
    site: str
    device_id: str
    accelerator: str  # the catalogue's key, such as h100-sxm-80gb
    used_h: Decimal  # device-hours that a run used
    idle_h: Decimal = Decimal(0)  # device-hours that stood ready and nobody used
    facility_energy_kwh: Decimal | None = None
    run_key: str = ""
    project: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnRateCard:
    """What own hardware costs, in one currency; staff and space are for a month of all devices."""

    currency: str
    capital_per_accelerator: Decimal  # with its share of server, network and rack
    life_years: Decimal
    residual_fraction: Decimal = Decimal(0)
    electricity_per_kwh: Decimal
    staff_per_month: Decimal = Decimal(0)
    space_per_month: Decimal = Decimal(0)
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnOwner:
    """A project, or one run of it, that own hardware works for; slugs as charges are tagged."""

    project: str
    run: str = ""
    plan_line_key: str = ""

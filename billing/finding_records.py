"""A finding about spending: what it costs, what could be saved, by which sum, where to look."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendFinding:
    """One thing that the bills show. `saving` is None where nobody can tell it from a bill."""

    code: str
    currency: str
    cost: Decimal
    saving: Decimal | None
    facts: Mapping[str, str] = field(default_factory=dict)  # plain figures that the words quote
    assumption: str = ""  # a key of the words; empty = the saving follows from the bill alone
    filters: tuple[str, ...] = ()  # the charges behind it, as the charges page filters them


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendLine:
    """What a rule looks at: one group of charges with its measures."""

    keys: Mapping[str, str | None]
    currency: str
    cost: Decimal
    requests: Decimal | None = None
    storage_tb_month: Decimal | None = None
    transfer_bytes: Decimal | None = None
    idle_accelerator_h: Decimal | None = None
    rows: int = 0

"""Which book of a month answers which question, where a source delivers two: the one place.

A month may have a billed and an amortised book side by side. Effective cost is read from the
amortised one where there is one, and so are idle hours: what a commitment left unused is a line of
that book only. Everything else is read from the billed one where there is one: no charge counts
twice. Where only the other book is there, it is read; an amortised book knows no cost but the
effective one, so other costs of such a month are unknown, not zero.
"""

from typing import Final

from django.db.models import Exists, OuterRef, Q, QuerySet

from billing.models import PeriodVersion
from billing.records import Basis, Dataset

MEASURED_IN_AMORTISED: Final = frozenset({"idle_accelerator_h"})


def measure_from(name: str) -> Dataset:
    """The book that is read for a measure where a month has both."""
    return Dataset.AMORTISED if name in MEASURED_IN_AMORTISED else Dataset.BILLED


def cost_from(basis: Basis) -> Dataset:
    """The book that is read for a cost where a month has both."""
    return Dataset.AMORTISED if basis is Basis.EFFECTIVE else Dataset.BILLED


def knows_cost(dataset: str, basis: Basis) -> bool:
    """Whether a book states this cost at all."""
    return dataset != Dataset.AMORTISED or basis is Basis.EFFECTIVE


def chosen_versions(
    versions: QuerySet[PeriodVersion], preferred: Dataset
) -> QuerySet[PeriodVersion]:
    """Of published versions, those that answer: the preferred book of each month, else the other.

    Args:
        versions: all that are published at one moment, of every book.
        preferred: the book to read where a month has it.
    """
    twins = versions.filter(
        period__source_id=OuterRef("period__source_id"),
        period__start=OuterRef("period__start"),
        period__dataset=preferred,
    )
    return versions.filter(Q(period__dataset=preferred) | ~Exists(twins))

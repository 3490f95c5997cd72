"""What each finding is called, what it means and what to do, in the reader's language."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


@dataclass(frozen=True, slots=True, kw_only=True)
class FindingWords:
    """Title, what the bill shows (with the facts' names), and what to do."""

    title: str | Promise
    shows: str | Promise
    do: str | Promise


WORDS: Final[Mapping[str, FindingWords]] = {
    "transfer_inter_region": FindingWords(
        title=_("Bytes between regions"),
        shows=_("{terabytes} TB crossed regions."),
        do=_("Keep the bucket and the cluster that reads it in one region, or copy the data once."),
    ),
    "nat_bytes": FindingWords(
        title=_("Bytes through a NAT gateway"),
        shows=_("{terabytes} TB went through a NAT gateway."),
        do=_("Read object storage over a gateway endpoint: its bytes cost nothing."),
    ),
    "small_reads": FindingWords(
        title=_("Many small reads"),
        shows=_(
            "{gets} GET requests against {tb_months} TB-months of objects; in shards of "
            "{shard_mb} MB the whole store, read once a day, needs {needed}."
        ),
        do=_("Pack samples into shards (WebDataset, tar) and read them whole."),
    ),
    "hot_storage_unread": FindingWords(
        title=_("Hot storage that nobody read"),
        shows=_(
            "Buckets in the hot tier without a GET request: {resources}, {tb_months} TB-months."
        ),
        do=_("Move them to infrequent access or an archive by a lifecycle rule."),
    ),
    "untagged": FindingWords(
        title=_("Spending without tags"),
        shows=_("The share of spending without a tag is {percent} %."),
        do=_("Tag resources where they are created, or add allocation rules by account."),
    ),
    "unallocated": FindingWords(
        title=_("Spending of no project"),
        shows=_("No allocation rule gives it to a project."),
        do=_("Look at it by account and tag, then add a rule."),
    ),
    "logging_growth": FindingWords(
        title=_("Logging grows"),
        shows=_("Logging services cost more than in the month before, by {percent} %."),
        do=_("Lower log levels of training nodes, sample, and set retention."),
    ),
    "idle_capacity": FindingWords(
        title=_("Capacity paid and unused"),
        shows=_("{hours} accelerator-hours were billed and used by nobody."),
        do=_("Release the reservation, or move work onto it."),
    ),
    "unmapped_accelerator": FindingWords(
        title=_("Accelerators of unknown kind"),
        shows=_("{rows} rows bill an accelerator that the catalogue does not know."),
        do=_("Add the instance type to the catalogue: its hours are missing from every sum."),
    ),
}
ASSUMPTIONS: Final[Mapping[str, str | Promise]] = {
    "same_region": _("if bucket and cluster share a region"),
    "bytes_are_reads": _("if all of these bytes are reads of object storage"),
    "one_pass_a_day": _("if the whole store is read once a day, in shards"),
    "infrequent_access": _("if infrequent access saves 45 %; retrieval costs extra"),
    "as_before": _("if it returns to the month before"),
    "capacity_released": _("if all of it is released or used"),
}

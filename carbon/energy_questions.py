"""Questions about energy and carbon as an address or a command asks them; no sums."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta
from typing import Final
from urllib.parse import urlencode
from uuid import UUID

from django.http import Http404
from django.utils.translation import gettext as _

from carbon.instants import settled
from formulae.periods import parse_utc
from projects.access import project_for, projects_for, sees_unallocated
from projects.records import Actor
from runs.selectors import runs_of, site_by_slug

IN_TIME: Final = ("hour", "day", "month")
BY_OWNER: Final = ("project", "run", "site")
BY_DEVICE: Final = ("node", "device")
GROUPS: Final = (*IN_TIME, *BY_OWNER, *BY_DEVICE)
BOUNDARIES: Final = ("facility", "it", "accelerator")
METHODS: Final = ("location", "market")
NOBODY: Final = "-"  # in place of a project: what no project used
HOUR: Final = timedelta(hours=1)
YEARS: Final = range(1900, 3000)  # of days that may be asked for
MAX_HOURS: Final = 24 * 31  # rows of a table by the hour
MAX_DEVICE_DAYS: Final = 31  # days of a table by node or device, which is read from device-hours


class QuestionError(ValueError):
    """An address or option that cannot be read; the message is for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EnergyQuestion:
    """Whose energy, when, by what; `allowed` is None for those who see all, nobody's too."""

    organisation_id: UUID
    by: str = "day"
    project: str = ""
    project_id: UUID | None = None
    run: str = ""
    run_id: UUID | None = None
    site: str = ""
    site_id: UUID | None = None
    node: str = ""
    device: str = ""
    start: datetime | None = None
    end: datetime | None = None
    as_of: datetime | None = None
    boundary: str = "facility"
    method: str = "location"
    allowed: tuple[UUID, ...] | None = None

    @property
    def is_of_nobody(self) -> bool:
        return self.project == NOBODY

    @property
    def is_by_device(self) -> bool:
        """Whether it takes device-hours to answer: the books know owners, no devices."""
        return self.by in BY_DEVICE or bool(self.node or self.device)

    @property
    def is_of_all_owners(self) -> bool:
        """Whether nothing is left out by owner: device-hours count whole."""
        return self.allowed is None and not self.project

    def written(self) -> list[tuple[str, str]]:
        """The question as pairs of an address; what is usual is left out."""
        pairs = [
            ("by", self.by),
            ("project", self.project),
            ("run", self.run),
            ("site", self.site),
            ("node", self.node),
            ("device", self.device),
            ("from", instant_text(self.start)),
            ("to", instant_text(self.end)),
            ("as_of", self.as_of.isoformat().replace("+00:00", "Z") if self.as_of else ""),
            ("boundary", "" if self.boundary == "facility" else self.boundary),
            ("method", "" if self.method == "location" else self.method),
        ]
        return [pair for pair in pairs if pair[1]]

    def query(self) -> str:
        """The parameters of an address about this question."""
        return urlencode(self.written())


def instant_text(at: datetime | None) -> str:
    """A day, or an hour where it is no midnight; empty for none."""
    if at is None:
        return ""
    return f"{at:%Y-%m-%d}" if at.time() == time() else f"{at:%Y-%m-%dT%H}"


def hour_text(at: datetime) -> str:
    """An hour as the walk's addresses name it."""
    return f"{at:%Y-%m-%dT%H}"


def month_named(text: str) -> datetime:
    """The first instant of a month such as 2026-05.

    Raises:
        ValueError: the text is no month.
    """
    return _in_years(datetime.strptime(text, "%Y-%m").replace(tzinfo=UTC))


def _in_years(at: datetime) -> datetime:
    if at.year not in YEARS:
        raise ValueError(f"the year {at.year}")
    return at


def hour_named(text: str) -> datetime:
    """The hour that an address names.

    Raises:
        Http404: the text is no hour.
    """
    try:
        return _in_years(datetime.strptime(text, "%Y-%m-%dT%H").replace(tzinfo=UTC))
    except ValueError as error:
        raise Http404("No such hour.") from error


def _instant(name: str, text: str) -> datetime | None:
    """A day or an hour of an address.

    Raises:
        QuestionError: it is neither.
    """
    if not text:
        return None
    for form in ("%Y-%m-%d", "%Y-%m-%dT%H"):
        try:
            return _in_years(datetime.strptime(text, form).replace(tzinfo=UTC))
        except ValueError:
            continue
    raise QuestionError(_("{name} is a day such as 2026-05-01.").format(name=name))


def _one_of(name: str, text: str, choices: tuple[str, ...]) -> str:
    """One of these words, the first where nothing is said."""
    if not text:
        return choices[0]
    if text not in choices:
        known = ", ".join(choices)
        raise QuestionError(_("{name} is one of {known}.").format(name=name, known=known))
    return text


def question_in(parameters: Mapping[str, str], actor: Actor, *, by: str = "day") -> EnergyQuestion:
    """The question of an address or command, limited to what the actor may see.

    Raises:
        QuestionError: a parameter cannot be read.
        Http404: it names a project, run or site that the actor does not see.
    """
    said = {name: value.strip() for name, value in parameters.items()}
    start, end = _instant("from", said.get("from", "")), _instant("to", said.get("to", ""))
    if start and end and start >= end:
        raise QuestionError(_("The first day (from) comes before the day that is out (to)."))
    question = EnergyQuestion(
        organisation_id=actor.organisation_id,
        by=_one_of("by", said.get("by", "") or by, GROUPS),
        start=start,
        end=end,
        as_of=_as_of(said.get("as_of", "")),
        boundary=_one_of("boundary", said.get("boundary", ""), BOUNDARIES),
        method=_one_of("method", said.get("method", ""), METHODS),
        allowed=_allowed(actor),
        node=said.get("node", "")[:200],
        device=said.get("device", "")[:200],
    )
    question = _with_project(question, actor, said.get("project", ""), said.get("run", ""))
    return _with_site(question, actor, said.get("site", ""))


def _as_of(text: str) -> datetime | None:
    if not text:
        return None
    try:
        return settled(parse_utc(text))
    except ValueError as error:
        raise QuestionError(_("as_of is an instant such as 2026-05-01T12:00:00Z.")) from error


def _allowed(actor: Actor) -> tuple[UUID, ...] | None:
    """The projects that somebody is limited to; None for roles of the whole organisation."""
    if sees_unallocated(actor):
        return None
    return tuple(projects_for(actor).values_list("pk", flat=True))


def _with_project(question: EnergyQuestion, actor: Actor, slug: str, run: str) -> EnergyQuestion:
    if slug == NOBODY:
        if question.allowed is not None:
            raise Http404("No such project.")
        return replace(question, project=NOBODY)
    if not slug:
        if run:
            raise QuestionError(_("Name the project of the run, too."))
        return question
    project = project_for(actor, slug)
    question = replace(question, project=slug, project_id=project.pk)
    if not run:
        return question
    if run == NOBODY:
        return replace(question, run=NOBODY)
    found = next((one for one in runs_of(project.pk) if one.slug == run), None)
    if found is None:
        raise Http404("No such run.")
    return replace(question, run=run, run_id=found.run_id)


def _with_site(question: EnergyQuestion, actor: Actor, slug: str) -> EnergyQuestion:
    """Sites belong to the organisation: those of a project see one only where it has entries."""
    if not slug:
        return question
    found = site_by_slug(actor.organisation_id, slug)
    if found is None:
        raise Http404("No such site.")
    return replace(question, site=slug, site_id=found.site_id)


def next_month(start: datetime) -> datetime:
    """The first instant of the month after."""
    return (start.replace(day=1) + timedelta(days=32)).replace(day=1)

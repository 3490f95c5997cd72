"""From a posted form to a question, and from a refused question back to the fields to correct."""

from collections.abc import Iterator
from dataclasses import dataclass

from django.utils.translation import gettext as _

from planning.estimate_forms import EstimateForm
from planning.spec import EstimateRequest, SpecError, parse_request

_FIELDS = {
    "price_per_accelerator_hour": "price",
    "price_per_accelerator_hour.currency": "currency",
    "model": "params",
    "training_flop": "extra",
    "spec": "extra",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """What is wrong with a question: the field's id on the page, its label, and why."""

    field: str
    html_id: str
    label: str
    why: str


def question_of(form: EstimateForm) -> EstimateRequest:
    """The question that a form asks.

    Raises:
        SpecError: the form is not valid, or the question cannot be asked; by field of the form.
    """
    if not form.is_valid():
        raise SpecError({name: str(errors[0]) for name, errors in form.errors.items()})
    return parse_request(form.document())


def problems_of(error: SpecError, form: EstimateForm) -> Iterator[Problem]:
    """Each problem with the field that is to be corrected."""
    for path, why in error.problems.items():
        name = field_of(path, form)
        bound = form[name] if name else None
        yield Problem(
            field=name or "",
            html_id=bound.id_for_label if bound else "",
            label=str(bound.label) if bound else path,
            why=why,
        )


def add_problems(error: SpecError, form: EstimateForm) -> None:
    """The same at the fields of a form that is shown again."""
    for path, why in error.problems.items():
        name = field_of(path, form)
        if name is None or not form.has_error(name):
            form.add_error(name, why if name else f"{path}: {why}")


def field_of(path: str, form: EstimateForm) -> str | None:
    """The field of the form that a path of SPEC is about; None where there is no single one."""
    head, _dot, rest = path.partition(".")
    leaf = rest.partition(".")[0]
    candidates = [path, _FIELDS.get(path, "")]
    if head in ("model", "reliability"):
        candidates.append(leaf)
    if head == "on_premises":
        candidates.append(f"on_premises_{leaf}")
    candidates += [head, _FIELDS.get(head, "")]
    return next((name for name in candidates if name in form.fields), None)


def unreadable_link() -> str:
    """What is said of a link that holds no question."""
    return _("This link holds no question that can be read: start from a preset.")

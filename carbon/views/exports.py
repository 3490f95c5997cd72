"""The table of energy and carbon as a file."""

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from carbon.energy_answers import energy_table
from carbon.energy_pages import period_words
from carbon.energy_questions import QuestionError
from carbon.exporting import CONTENT_TYPES, CSV, FORMATS, table_file
from carbon.readers import READERS
from carbon.views.energy import asked_question, refused
from projects.access import actor_of, require_scope


@require_safe
def energy_export(request: HttpRequest) -> HttpResponse:
    """The rows of the page as CSV or Parquet: the same numbers, with units in their names."""
    actor = actor_of(request)
    require_scope(actor, *READERS)
    kind = request.GET.get("format") or CSV
    try:
        question = asked_question(request, actor)
        if kind not in FORMATS:
            raise QuestionError(_("The format is csv or parquet."))
    except QuestionError as error:
        return refused(request, error)
    days = period_words(question).replace(" – ", "_").replace("…", "") if question.start else "all"
    name = f"energy-by-{question.by}-{days}.{kind}"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    body = table_file(energy_table(question), question, kind=kind)
    return HttpResponse(body, content_type=CONTENT_TYPES[kind], headers=headers)

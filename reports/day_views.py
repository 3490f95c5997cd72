"""The tables of a project's page as files. Parse, select, answer."""

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from projects.access import Role, actor_of, project_for
from projects.models import Project
from reports.day_sheets import day_sheets
from reports.selectors import project_page
from reports.sheet_files import CSV_TYPE, XLSX_TYPE, as_csv, as_xlsx
from reports.sheets import Sheet
from reports.views import asked_basis, asked_instant


def _sheets(request: HttpRequest, slug: str) -> tuple[Project, dict[str, Sheet]]:
    project = project_for(actor_of(request), slug, Role.VIEWER)
    page = project_page(project, as_of=asked_instant(request), basis=asked_basis(request))
    return project, day_sheets(project, page)


def _attached(content: str | bytes, content_type: str, name: str) -> HttpResponse:
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return HttpResponse(content, content_type=content_type, headers=headers)


@require_safe
def days_csv(request: HttpRequest, slug: str, table: str) -> HttpResponse:
    """One table of the page: its cost, energy or emissions by day."""
    project, sheets = _sheets(request, slug)
    if table not in sheets:
        raise Http404("The page has no such table.")
    return _attached(as_csv(sheets[table]), CSV_TYPE, f"{project.slug}-{table}-by-day.csv")


@require_safe
def days_xlsx(request: HttpRequest, slug: str) -> HttpResponse:
    """All tables of the page, a sheet each."""
    project, sheets = _sheets(request, slug)
    return _attached(as_xlsx(list(sheets.values())), XLSX_TYPE, f"{project.slug}-by-day.xlsx")

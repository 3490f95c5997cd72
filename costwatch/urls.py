"""Where each room's pages and REST doors are mounted."""

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import include, path
from django.views.decorators.csrf import csrf_exempt
from django.views.generic import RedirectView
from django.views.i18n import set_language
from drf_spectacular.views import SpectacularAPIView

import audit.urls
import billing.urls
import carbon.urls
import jobs.urls
import planning.urls
import projects.urls
import reports.urls
import runs.urls
from costwatch.health import healthz, readyz

# Lower rooms first: projects/new/ must be asked before reports' projects/<slug>/.
ROOMS = (audit, jobs, projects, runs, carbon, billing, planning, reports)


@login_not_required
def robots(request: HttpRequest) -> HttpResponse:
    """Ask crawlers to stay out of a private set of books."""
    return HttpResponse("User-agent: *\nDisallow: /\n", content_type="text/plain")


@csrf_exempt  # it does nothing
@login_not_required
def api_not_found(request: HttpRequest, rest: str) -> JsonResponse:
    """Answer programs in JSON where there is no door."""
    message = f"There is no door {request.method} {request.path}: see /api/v1/schema."
    return JsonResponse({"code": "not_found", "message": message}, status=404)


urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    path("robots.txt", robots, name="robots"),
    path("settings/language/", login_not_required(set_language), name="set_language"),
    path("api/v1/schema", SpectacularAPIView.as_view(), name="api_schema"),
    path("api/", RedirectView.as_view(pattern_name="api_schema"), name="api"),
    *(path("api/v1/", include(room.urls.api_urlpatterns)) for room in ROOMS),
    path("api/v1/<path:rest>", api_not_found, name="api_not_found"),
    *(path("", include(room.urls.urlpatterns)) for room in ROOMS),
]

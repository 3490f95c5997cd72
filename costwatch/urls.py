"""Where each room's pages and REST doors are mounted."""

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.urls import include, path
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


urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    path("robots.txt", robots, name="robots"),
    path("settings/language/", login_not_required(set_language), name="set_language"),
    path("api/v1/schema", SpectacularAPIView.as_view(), name="api_schema"),
    path("api/", RedirectView.as_view(pattern_name="api_schema"), name="api"),
    *(path("api/v1/", include(room.urls.api_urlpatterns)) for room in ROOMS),
    *(path("", include(room.urls.urlpatterns)) for room in ROOMS),
]

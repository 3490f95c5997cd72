"""Health answers for load balancers: alive, and ready to serve."""

import structlog
from django.contrib.auth.decorators import login_not_required
from django.db import OperationalError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

log = structlog.get_logger(__name__)


@login_not_required
@never_cache
@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    """Answer 200 while the process can answer at all."""
    return JsonResponse({"status": "ok"})


@login_not_required
@never_cache
@require_safe
def readyz(request: HttpRequest) -> JsonResponse:
    """Answer 200 when the database answers and no migration is missing, else 503."""
    try:
        executor = MigrationExecutor(connection)
        waiting = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except OperationalError as error:
        log.warning("not ready", reason="database", error=str(error))
        return JsonResponse({"status": "unavailable", "reason": "database"}, status=503)
    if waiting:
        return JsonResponse({"status": "unavailable", "reason": "migrations"}, status=503)
    return JsonResponse({"status": "ok"})

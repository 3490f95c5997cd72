"""/metrics: what Prometheus scrapes of this installation, with a token or a signed-in role."""

from datetime import UTC, datetime

from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.views import APIView

from carbon.product_metrics import CONTENT_TYPE, product_metrics
from carbon.readers import READERS
from projects.access import actor_of, require_scope, sees_unallocated


class PlainText(BaseRenderer):
    """Text as Prometheus reads it."""

    media_type = "text/plain"
    format = "txt"

    def render(
        self,
        data: object,
        accepted_media_type: str | None = None,
        renderer_context: object | None = None,
    ) -> bytes:
        """Refusals come through here: of what is told of them, the sentence."""
        words = data.get("message", "") if isinstance(data, dict) else data
        return f"{words}\n".encode()


class MetricsView(APIView):
    """The metrics of an organisation."""

    renderer_classes = (PlainText,)

    @extend_schema(exclude=True)
    def get(self, request: Request) -> HttpResponse:
        """Everything that the organisation's tokens and roles may read."""
        actor = actor_of(request)
        require_scope(actor, *READERS)
        if not sees_unallocated(actor):
            raise PermissionDenied("Metrics are of the whole organisation.")
        body = product_metrics(actor.organisation_id, now=datetime.now(UTC))
        return HttpResponse(body, content_type=CONTENT_TYPE)

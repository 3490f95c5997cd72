"""Addresses of the room `planning`: pages, and the REST doors under /api/v1/."""

from django.urls import URLPattern, URLResolver

urlpatterns: list[URLPattern | URLResolver] = []
api_urlpatterns: list[URLPattern | URLResolver] = []

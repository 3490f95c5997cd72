"""Addresses of the reading room: the first page and the pages of projects."""

from django.urls import URLPattern, URLResolver, path

from reports import explorer_urls, project_urls, views

urlpatterns: list[URLPattern | URLResolver] = [
    path("", views.home, name="home"),
    *explorer_urls.urlpatterns,
    path("projects/<slug:slug>/", views.project, name="project"),
    path("projects/<slug:slug>/advice/", views.advice, name="advice"),
    *project_urls.urlpatterns,
]
api_urlpatterns: list[URLPattern | URLResolver] = []

"""Addresses of the cost explorer, its saved views, the storage page, and the files of both."""

from django.urls import URLPattern, URLResolver, path

from reports import explorer_views, storage_views

urlpatterns: list[URLPattern | URLResolver] = [
    path("costs/", explorer_views.costs, name="costs"),
    path("costs/table.csv", explorer_views.costs_csv, name="costs_csv"),
    path("costs/table.xlsx", explorer_views.costs_xlsx, name="costs_xlsx"),
    path("costs/views/", explorer_views.saved_views, name="saved_views"),
    path("costs/views/<uuid:view_id>/", explorer_views.saved_view, name="saved_view"),
    path(
        "costs/views/<uuid:view_id>/delete/",
        explorer_views.saved_view_delete,
        name="saved_view_delete",
    ),
    path("projects/<slug:slug>/storage/", storage_views.storage, name="project_storage"),
    path(
        "projects/<slug:slug>/storage/<str:table>.csv",
        storage_views.storage_csv,
        name="project_storage_csv",
    ),
    path(
        "projects/<slug:slug>/storage/tables.xlsx",
        storage_views.storage_xlsx,
        name="project_storage_xlsx",
    ),
]

"""Addresses of the room `runs`: pages, and the REST doors under /api/v1/."""

from django.urls import URLPattern, URLResolver, path

from runs import api, progress_api, progress_views, views

urlpatterns: list[URLPattern | URLResolver] = [
    path("catalogue/", views.catalogue, name="catalogue"),
    path("catalogue/new/", views.accelerator_new, name="catalogue_accelerator_new"),
    path("catalogue/instance-types/", views.instance_types, name="catalogue_instance_types"),
    path(
        "catalogue/instance-types/new/",
        views.instance_type_new,
        name="catalogue_instance_type_new",
    ),
    path(
        "catalogue/instance-types/<uuid:entry_id>/edit/",
        views.instance_type_edit,
        name="catalogue_instance_type_edit",
    ),
    path(
        "catalogue/instance-types/<uuid:entry_id>/remove/",
        views.instance_type_remove,
        name="catalogue_instance_type_remove",
    ),
    path("catalogue/<slug:key>/", views.accelerator, name="catalogue_accelerator"),
    path("catalogue/<slug:key>/edit/", views.accelerator_edit, name="catalogue_accelerator_edit"),
    path(
        "catalogue/<slug:key>/remove/",
        views.accelerator_remove,
        name="catalogue_accelerator_remove",
    ),
    path("projects/<slug:slug>/runs/", progress_views.runs, name="runs"),
    path("projects/<slug:slug>/new-run/", progress_views.run_new, name="run_new"),
    path(
        "projects/<slug:slug>/runs/<slug:run_slug>/", progress_views.run_detail, name="run_detail"
    ),
    path(
        "projects/<slug:slug>/runs/<slug:run_slug>/edit/",
        progress_views.run_edit,
        name="run_edit",
    ),
]
api_urlpatterns: list[URLPattern | URLResolver] = [
    path(
        "catalogue/accelerators", api.AcceleratorsView.as_view(), name="api_catalogue_accelerators"
    ),
    path(
        "catalogue/instance-types",
        api.InstanceTypesView.as_view(),
        name="api_catalogue_instance_types",
    ),
    path("runs/<slug:slug>", progress_api.RunsView.as_view(), name="api_runs"),
    path(
        "runs/<slug:slug>/<slug:run_slug>/progress",
        progress_api.ProgressView.as_view(),
        name="api_run_progress",
    ),
]

"""Addresses of the room `billing`: pages, and the REST doors under /api/v1/."""

from django.urls import URLPattern, URLResolver, path

from billing import api, views

urlpatterns: list[URLPattern | URLResolver] = [
    path("imports/", views.imports, name="imports"),
    path("imports/new/", views.import_upload, name="import_upload"),
    path("imports/rules/", views.import_rules, name="import_rules"),
    path(
        "imports/rules/<int:position>/remove/", views.import_rule_remove, name="import_rule_remove"
    ),
    path("imports/<uuid:delivery_id>/", views.import_detail, name="import_detail"),
    path("imports/<uuid:delivery_id>/decision/", views.import_decide, name="import_decide"),
]
api_urlpatterns: list[URLPattern | URLResolver] = [
    path("charges/imports", api.ImportsView.as_view(), name="api_charge_imports"),
    path("charges/imports/<uuid:delivery_id>", api.ImportView.as_view(), name="api_charge_import"),
    path("projects/<slug:slug>/costs", api.ProjectCostsView.as_view(), name="api_project_costs"),
]

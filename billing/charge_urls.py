"""Addresses of charges: their page, single ones, files of them; their REST doors."""

from django.urls import URLPattern, URLResolver, path

from billing import charge_views, cost_api

urlpatterns: list[URLPattern | URLResolver] = [
    path("charges/", charge_views.charges, name="charges"),
    path("charges/table.csv", charge_views.charges_table, name="charges_table"),
    path("charges/export/", charge_views.charges_export, name="charges_export"),
    path("charges/rows/", charge_views.charge_rows_page, name="charge_rows"),
    path(
        "charges/rows/<uuid:slice_id>/<int:number>/",
        charge_views.charge_detail,
        name="charge_detail",
    ),
]
api_urlpatterns: list[URLPattern | URLResolver] = [
    path("charges/export", cost_api.ChargesExportView.as_view(), name="api_charges_export"),
    path("costs", cost_api.CostsView.as_view(), name="api_costs"),
    path(
        "projects/<slug:slug>/costs", cost_api.ProjectCostsView.as_view(), name="api_project_costs"
    ),
]

"""Addresses of the room `billing`: pages, and the REST doors under /api/v1/."""

from django.urls import URLPattern, URLResolver, path

from billing import api, price_api, price_views, views

urlpatterns: list[URLPattern | URLResolver] = [
    path("imports/", views.imports, name="imports"),
    path("imports/new/", views.import_upload, name="import_upload"),
    path("imports/rules/", views.import_rules, name="import_rules"),
    path(
        "imports/rules/<int:position>/remove/", views.import_rule_remove, name="import_rule_remove"
    ),
    path("imports/<uuid:delivery_id>/", views.import_detail, name="import_detail"),
    path("imports/<uuid:delivery_id>/decision/", views.import_decide, name="import_decide"),
    path("prices/", price_views.prices, name="prices"),
    path("prices/new/", price_views.price_new, name="price_new"),
    path("prices/history/", price_views.price_history_page, name="price_history"),
    path("prices/template.csv", price_views.price_template_file, name="price_template"),
    path("prices/<uuid:price_id>/withdraw/", price_views.price_withdraw, name="price_withdraw"),
    path("prices/rates/new/", price_views.exchange_rate_new, name="exchange_rate_new"),
    path(
        "prices/rates/template.csv",
        price_views.exchange_rate_template_file,
        name="exchange_rate_template",
    ),
    path(
        "prices/rates/<uuid:rate_id>/withdraw/",
        price_views.exchange_rate_withdraw,
        name="exchange_rate_withdraw",
    ),
]
api_urlpatterns: list[URLPattern | URLResolver] = [
    path("charges/imports", api.ImportsView.as_view(), name="api_charge_imports"),
    path("charges/imports/<uuid:delivery_id>", api.ImportView.as_view(), name="api_charge_import"),
    path("projects/<slug:slug>/costs", api.ProjectCostsView.as_view(), name="api_project_costs"),
    path("prices", price_api.PricesView.as_view(), name="api_prices"),
    path("exchange_rates", price_api.ExchangeRatesView.as_view(), name="api_exchange_rates"),
]

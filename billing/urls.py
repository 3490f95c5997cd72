"""Addresses of the room `billing`: pages, and the REST doors under /api/v1/."""

from django.urls import URLPattern, URLResolver, path

from billing import (
    allocation_urls,
    api,
    book_urls,
    charge_urls,
    price_api,
    price_feed_urls,
    price_views,
    source_views,
    views,
)

urlpatterns: list[URLPattern | URLResolver] = [
    *allocation_urls.urlpatterns,
    *book_urls.urlpatterns,
    *charge_urls.urlpatterns,
    *price_feed_urls.urlpatterns,
    path("imports/", views.imports, name="imports"),
    path("imports/new/", views.import_upload, name="import_upload"),
    path("imports/<uuid:delivery_id>/", views.import_detail, name="import_detail"),
    path("imports/<uuid:delivery_id>/decision/", views.import_decide, name="import_decide"),
    path("sources/", source_views.sources, name="sources"),
    path("sources/new/", source_views.source_new, name="source_new"),
    path("sources/new/<slug:kind>/", source_views.source_connect, name="source_connect"),
    path("sources/<uuid:source_id>/", source_views.source_detail, name="source_detail"),
    path("sources/<uuid:source_id>/change/", source_views.source_change, name="source_change"),
    path("sources/<uuid:source_id>/test/", source_views.source_test, name="source_test"),
    path("sources/<uuid:source_id>/pull/", source_views.source_pull, name="source_pull"),
    path("sources/<uuid:source_id>/pause/", source_views.source_pause, name="source_pause"),
    path(
        "sources/<uuid:source_id>/credential/forget/",
        source_views.source_forget_secret,
        name="source_forget_secret",
    ),
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
    *charge_urls.api_urlpatterns,
    path("prices", price_api.PricesView.as_view(), name="api_prices"),
    path("exchange_rates", price_api.ExchangeRatesView.as_view(), name="api_exchange_rates"),
]

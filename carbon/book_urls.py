"""Addresses of instruments, of the books' periods, of sites' hardware and boundaries."""

from django.urls import URLPattern, URLResolver, path

from carbon.views import assets, books, instruments

urlpatterns: list[URLPattern | URLResolver] = [
    path("instruments/", instruments.instruments, name="instruments"),
    path("instruments/new/", instruments.instrument_new, name="instrument_new"),
    path("instruments/residual-mix/", instruments.residual_mix_set, name="residual_mix_set"),
    path("instruments/<uuid:instrument_id>/", instruments.instrument, name="instrument"),
    path(
        "instruments/<uuid:instrument_id>/withdraw/",
        instruments.instrument_withdraw,
        name="instrument_withdraw",
    ),
    path(
        "instruments/<uuid:instrument_id>/evidence/",
        instruments.instrument_evidence,
        name="instrument_evidence",
    ),
    path("books/", books.books, name="books"),
    path("books/prepare/", books.book_prepare, name="book_prepare"),
    path("books/<uuid:lock_id>/", books.book_period, name="book_period"),
    path("books/<uuid:lock_id>/<slug:action>/", books.book_action, name="book_action"),
    path("sites/<slug:slug>/assets/", assets.site_assets, name="site_assets"),
    path(
        "sites/<slug:slug>/assets/<uuid:asset_id>/withdraw/",
        assets.site_asset_withdraw,
        name="site_asset_withdraw",
    ),
    path("sites/<slug:slug>/boundary/", assets.site_boundary, name="site_boundary"),
]

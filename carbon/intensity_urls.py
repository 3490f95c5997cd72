"""Addresses of hourly grid intensity and of the factor registry; `carbon.urls` mounts them."""

from django.urls import URLPattern, URLResolver, path

from carbon.views import factors as factor_pages
from carbon.views import intensity as pages

urlpatterns: list[URLPattern | URLResolver] = [
    path("intensity/", pages.intensity_sources, name="intensity_sources"),
    path("intensity/new/", pages.intensity_source_new, name="intensity_source_new"),
    path("intensity/<uuid:source_id>/", pages.intensity_source, name="intensity_source"),
    path(
        "intensity/<uuid:source_id>/test/",
        pages.intensity_source_test,
        name="intensity_source_test",
    ),
    path(
        "intensity/<uuid:source_id>/pull/",
        pages.intensity_source_pull,
        name="intensity_source_pull",
    ),
    path(
        "intensity/<uuid:source_id>/pause/",
        pages.intensity_source_pause,
        name="intensity_source_pause",
    ),
    path(
        "intensity/<uuid:source_id>/import/",
        pages.intensity_source_import,
        name="intensity_source_import",
    ),
    path("sites/<slug:slug>/intensity/", pages.site_intensity, name="site_intensity"),
    path("factors/", factor_pages.factors, name="factors"),
    path("factors/approve/", factor_pages.factor_approve, name="factor_approve"),
    path("factors/factors.csv", factor_pages.factors_csv, name="factors_csv"),
]

"""Addresses of the books' own pages: mappings, reconciliation, versions, findings."""

from django.urls import URLPattern, URLResolver, path

from billing import book_views, mapping_views

urlpatterns: list[URLPattern | URLResolver] = [
    path("imports/mapping/", mapping_views.mapping_new, name="mapping_new"),
    path("imports/mapping/<str:held>/", mapping_views.mapping_edit, name="mapping_edit"),
    path("reconciliation/", book_views.reconciliation, name="reconciliation"),
    path(
        "reconciliation/<uuid:total_id>/withdraw/",
        book_views.invoice_total_withdraw,
        name="invoice_total_withdraw",
    ),
    path("imports/months/<int:period_id>/", book_views.period_versions, name="period_versions"),
    path("findings/", book_views.findings, name="findings"),
]

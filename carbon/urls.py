"""Addresses of the room `carbon`: pages, and the REST doors under /api/v1/."""

from django.urls import URLPattern, URLResolver, path

from carbon import api, batch_api, book_urls, energy_urls, intensity_urls, remote_write_api
from carbon.views import meters as meter_pages
from carbon.views import power as power_pages
from carbon.views import pulls as pull_pages
from carbon.views import sites as site_pages

urlpatterns: list[URLPattern | URLResolver] = [
    path("sites/", site_pages.sites, name="sites"),
    path("sites/new/", site_pages.site_new, name="site_new"),
    path("sites/<slug:slug>/", site_pages.site, name="site"),
    path("sites/<slug:slug>/edit/", site_pages.site_edit, name="site_edit"),
    path("sites/<slug:slug>/factors/", site_pages.site_factor_add, name="site_factor_add"),
    path(
        "sites/<slug:slug>/factors/<uuid:factor_id>/withdraw/",
        site_pages.site_factor_withdraw,
        name="site_factor_withdraw",
    ),
    path("sites/<slug:slug>/pulls/", pull_pages.pulls, name="site_pulls"),
    path(
        "sites/<slug:slug>/pulls/<uuid:pull_id>/<slug:action>/",
        pull_pages.pull_action,
        name="site_pull_action",
    ),
    path("sites/<slug:slug>/meters/", meter_pages.meters, name="site_meters"),
    path("sites/<slug:slug>/meters/upload/", meter_pages.meters_upload, name="site_meters_upload"),
    path(
        "sites/<slug:slug>/meters/readings/<int:reading_id>/withdraw/",
        meter_pages.meter_withdraw,
        name="site_meter_withdraw",
    ),
    path(
        "sites/<slug:slug>/meters/factors/<uuid:factor_id>/withdraw/",
        meter_pages.period_factor_withdraw,
        name="site_period_factor_withdraw",
    ),
    path("sites/<slug:slug>/assign/", site_pages.site_assign, name="site_assign"),
    path("power/", power_pages.power, name="power"),
    path("power/<uuid:job_id>/", power_pages.power_delivery, name="power_delivery"),
    *energy_urls.urlpatterns,
    *book_urls.urlpatterns,
    *intensity_urls.urlpatterns,
]
api_urlpatterns: list[URLPattern | URLResolver] = [
    *energy_urls.api_urlpatterns,
    path("power/batches", batch_api.PowerBatchesView.as_view(), name="api_power_batches"),
    path(
        "prometheus/write", remote_write_api.RemoteWriteView.as_view(), name="api_prometheus_write"
    ),
    path(
        "projects/<slug:slug>/emissions", api.ProjectEmissionsView.as_view(), name="api_emissions"
    ),
]

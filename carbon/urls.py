"""Addresses of the room `carbon`: pages, and the REST doors under /api/v1/."""

from django.urls import URLPattern, URLResolver, path

from carbon import api
from carbon.views import power, sites

urlpatterns: list[URLPattern | URLResolver] = [
    path("sites/", sites.sites, name="sites"),
    path("sites/new/", sites.site_new, name="site_new"),
    path("sites/<slug:slug>/", sites.site, name="site"),
    path("sites/<slug:slug>/edit/", sites.site_edit, name="site_edit"),
    path("sites/<slug:slug>/factors/", sites.site_factor_add, name="site_factor_add"),
    path(
        "sites/<slug:slug>/factors/<uuid:factor_id>/withdraw/",
        sites.site_factor_withdraw,
        name="site_factor_withdraw",
    ),
    path("sites/<slug:slug>/assign/", sites.site_assign, name="site_assign"),
    path("power/", power.power, name="power"),
    path("power/<uuid:job_id>/", power.power_delivery, name="power_delivery"),
]
api_urlpatterns: list[URLPattern | URLResolver] = [
    path("power/batches", api.PowerBatchesView.as_view(), name="api_power_batches"),
    path("projects/<slug:slug>/energy", api.ProjectEnergyView.as_view(), name="api_energy"),
    path(
        "projects/<slug:slug>/emissions", api.ProjectEmissionsView.as_view(), name="api_emissions"
    ),
]

"""Addresses of the pages and doors of energy: now, over time, the walk, senders, coverage."""

from django.urls import URLPattern, URLResolver, path

from carbon import energy_api
from carbon.views import coverage as coverage_pages
from carbon.views import energy as energy_pages
from carbon.views import exports as export_pages
from carbon.views import now as now_pages
from carbon.views import senders as sender_pages
from carbon.views import walk as walk_pages
from carbon.views.metrics import MetricsView

urlpatterns: list[URLPattern | URLResolver] = [
    path("energy/", energy_pages.energy, name="energy"),
    path("energy/coverage/", coverage_pages.energy_coverage, name="energy_coverage"),
    path("energy/export/", export_pages.energy_export, name="energy_export"),
    path("energy/hours/<str:hour>/", walk_pages.energy_hour, name="energy_hour"),
    path(
        "energy/hours/<str:hour>/devices/<int:device_id>/",
        walk_pages.energy_device,
        name="energy_device",
    ),
    path("power/now/", now_pages.power_now, name="power_now"),
    path("senders/", sender_pages.senders, name="senders"),
    path("senders/<int:sender_id>/", sender_pages.sender, name="sender"),
    path("metrics", MetricsView.as_view(), name="metrics"),
]
api_urlpatterns: list[URLPattern | URLResolver] = [
    path("projects/<slug:slug>/energy", energy_api.ProjectEnergyView.as_view(), name="api_energy"),
    path("sites/<slug:slug>/energy", energy_api.SiteEnergyView.as_view(), name="api_site_energy"),
]

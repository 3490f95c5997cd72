"""Addresses of intent: pages, and the REST doors under /api/v1/."""

from django.urls import URLPattern, URLResolver, path

from planning import api, estimate_views, plan_views

urlpatterns: list[URLPattern | URLResolver] = [
    path("estimates/", estimate_views.estimates, name="estimates"),
    path("estimates/new/", estimate_views.estimate_new, name="estimate_new"),
    path("estimates/<uuid:estimate_id>/", estimate_views.estimate, name="estimate"),
    path("projects/<slug:slug>/plan/", plan_views.plan, name="plan"),
    path(
        "projects/<slug:slug>/plan/versions/<int:number>/",
        plan_views.plan_version,
        name="plan_version",
    ),
    path("projects/<slug:slug>/plan/approve/", plan_views.plan_approve, name="plan_approve"),
]
api_urlpatterns: list[URLPattern | URLResolver] = [
    path("estimates", api.EstimatesView.as_view(), name="api_estimates"),
    path("projects/<slug:slug>/plan", api.PlanView.as_view(), name="api_plan"),
    path("projects/<slug:slug>/burndown", api.BurndownView.as_view(), name="api_burndown"),
]

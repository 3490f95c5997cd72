"""Addresses of intent: pages, and the REST doors under /api/v1/."""

from django.urls import URLPattern, URLResolver, path

from planning import api, views

urlpatterns: list[URLPattern | URLResolver] = [
    path("estimates/", views.estimates, name="estimates"),
    path("estimates/new/", views.estimate_new, name="estimate_new"),
    path("estimates/<uuid:estimate_id>/", views.estimate, name="estimate"),
    path("projects/<slug:slug>/plan/", views.plan, name="plan"),
    path("projects/<slug:slug>/plan/approve/", views.plan_approve, name="plan_approve"),
]
api_urlpatterns: list[URLPattern | URLResolver] = [
    path("estimates", api.EstimatesView.as_view(), name="api_estimates"),
    path("projects/<slug:slug>/plan", api.PlanView.as_view(), name="api_plan"),
    path("projects/<slug:slug>/burndown", api.BurndownView.as_view(), name="api_burndown"),
]

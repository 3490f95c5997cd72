"""Addresses of intent: pages, and the REST doors under /api/v1/."""

from django.urls import URLPattern, URLResolver, path

from planning import (
    api,
    compare_views,
    estimate_live,
    estimate_views,
    milestone_views,
    plan_views,
    rate_card_views,
)

urlpatterns: list[URLPattern | URLResolver] = [
    path("estimates/", estimate_views.estimates, name="estimates"),
    path("estimates/compare/", compare_views.compare, name="estimate_compare"),
    path("estimates/new/", estimate_views.estimate_new, name="estimate_new"),
    path("estimates/chapter/", estimate_views.estimate_chapter, name="estimate_chapter"),
    path("estimates/preview/", estimate_live.estimate_preview, name="estimate_preview"),
    path("estimates/read-config/", estimate_live.estimate_read_config, name="estimate_read_config"),
    *(
        path(
            f"estimates/new/{kind}/",
            estimate_live.estimate_alternatives_new,
            {"kind": kind},
            name=f"estimate_new_{kind}",
        )
        for kind in (estimate_live.PLACES, estimate_live.HARDWARE)
    ),
    path("estimates/<uuid:estimate_id>/", estimate_views.estimate, name="estimate"),
    *(
        path(
            f"estimates/<uuid:estimate_id>/{kind}/",
            estimate_live.estimate_alternatives,
            {"kind": kind},
            name=f"estimate_{kind}",
        )
        for kind in (estimate_live.PLACES, estimate_live.HARDWARE)
    ),
    *(
        path(
            f"estimates/<uuid:estimate_id>/export.{kind}",
            estimate_views.estimate_export,
            {"kind": kind},
            name=f"estimate_export_{kind}",
        )
        for kind in ("json", "csv")
    ),
    path("projects/<slug:slug>/plan/", plan_views.plan, name="plan"),
    path(
        "projects/<slug:slug>/plan/versions/<int:number>/",
        plan_views.plan_version,
        name="plan_version",
    ),
    path("projects/<slug:slug>/plan/approve/", plan_views.plan_approve, name="plan_approve"),
    path(
        "projects/<slug:slug>/plan/milestones/",
        milestone_views.plan_milestones,
        name="plan_milestones",
    ),
    path("sites/<slug:slug>/rate-card/", rate_card_views.rate_card, name="rate_card"),
]
api_urlpatterns: list[URLPattern | URLResolver] = [
    path("estimates", api.EstimatesView.as_view(), name="api_estimates"),
    path("projects/<slug:slug>/plan", api.PlanView.as_view(), name="api_plan"),
    path("projects/<slug:slug>/burndown", api.BurndownView.as_view(), name="api_burndown"),
    path("projects/<slug:slug>/variance", api.VarianceView.as_view(), name="api_variance"),
]

"""Addresses of a project's further pages: the cost of its runs, what people add."""

from django.urls import URLPattern, URLResolver, path

from reports import day_views, live_views, note_views, run_cost_views

urlpatterns: list[URLPattern | URLResolver] = [
    path("projects/<slug:slug>/run-costs/", run_cost_views.run_costs_page, name="run_costs"),
    path("projects/<slug:slug>/now/", live_views.project_now, name="project_now"),
    path("projects/<slug:slug>/days/<slug:table>.csv", day_views.days_csv, name="days_csv"),
    path("projects/<slug:slug>/days.xlsx", day_views.days_xlsx, name="days_xlsx"),
    path("projects/<slug:slug>/annotations/", note_views.annotations, name="annotations"),
    path("projects/<slug:slug>/comments/", note_views.comments, name="comments"),
    path(
        "annotations/<uuid:annotation_id>/delete/",
        note_views.annotation_delete,
        name="annotation_delete",
    ),
    path("comments/<uuid:comment_id>/delete/", note_views.comment_delete, name="comment_delete"),
]

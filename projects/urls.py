"""Addresses of the room `projects`: pages, and the REST doors under /api/v1/."""

from django.contrib.auth import views as auth
from django.urls import URLPattern, URLResolver, path

from projects import api
from projects.views import jobs, people, preferences, projects, sign_in, tokens, trail

urlpatterns: list[URLPattern | URLResolver] = [
    path("login/", sign_in.SignInView.as_view(), name="login"),
    path("logout/", auth.LogoutView.as_view(), name="logout"),
    path("password/", auth.PasswordChangeView.as_view(), name="password_change"),
    path("password/done/", auth.PasswordChangeDoneView.as_view(), name="password_change_done"),
    path("password/reset/", auth.PasswordResetView.as_view(), name="password_reset"),
    path("password/reset/sent/", auth.PasswordResetDoneView.as_view(), name="password_reset_done"),
    path(
        "password/reset/<uidb64>/<token>/",
        auth.PasswordResetConfirmView.as_view(),
        name="password_reset_confirm",
    ),
    path(
        "password/reset/done/",
        auth.PasswordResetCompleteView.as_view(),
        name="password_reset_complete",
    ),
    path("settings/theme/", preferences.set_theme, name="set_theme"),
    path("projects/new/", projects.project_new, name="project_new"),
    path("projects/<slug:slug>/members/", people.member_set, name="member_set"),
    path(
        "projects/<slug:slug>/members/<int:user_id>/remove/",
        people.member_remove,
        name="member_remove",
    ),
    path("people/", people.people, name="people"),
    path("people/<int:user_id>/role/", people.person_role, name="person_role"),
    path("people/<int:user_id>/active/", people.person_active, name="person_active"),
    path("people/trail/", trail.audit_trail, name="audit_trail"),
    path("tokens/", tokens.tokens, name="tokens"),
    path("tokens/<uuid:token_id>/revoke/", tokens.token_revoke, name="token_revoke"),
    path("jobs/<uuid:job_id>/progress/", jobs.job_progress, name="job_progress"),
]
api_urlpatterns: list[URLPattern | URLResolver] = [
    path("projects", api.ProjectsView.as_view(), name="api_projects"),
    path("projects/<slug:slug>", api.ProjectView.as_view(), name="api_project"),
    path("tokens", api.TokensView.as_view(), name="api_tokens"),
    path("tokens/<uuid:token_id>", api.TokenView.as_view(), name="api_token"),
    path("jobs/<uuid:job_id>", api.JobView.as_view(), name="api_job"),
]

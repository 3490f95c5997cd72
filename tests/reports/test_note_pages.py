"""Annotations and comments on a project's page: who may add and delete them, where they show."""

from datetime import date

import pytest
from django.test import Client

from audit.models import AuditEntry
from projects.models import Project
from projects.records import Role
from reports.models import Annotation, Comment
from reports.overview import APART, Happening, markers_of
from tests import builders

pytestmark = pytest.mark.django_db
PAGE = "/projects/moe/"


@pytest.fixture
def moe() -> Project:
    people = [("olga", Role.OWNER), ("ann", Role.ANALYST), ("vera", Role.VIEWER)]
    members = [(builders.person(name), role) for name, role in people]
    return builders.project("moe", members=members)


def client_of(project: Project, role: Role) -> Client:
    return builders.signed_in(project.memberships.get(role=role).user)


def annotate(client: Client, *, day: str = "2026-05-04", text: str = "node swap") -> int:
    return client.post(f"{PAGE}annotations/", {"day": day, "text": text}).status_code


def test_an_analyst_annotates_a_day_and_a_viewer_may_not(moe):
    viewer, analyst = client_of(moe, Role.VIEWER), client_of(moe, Role.ANALYST)

    assert annotate(viewer) == 403
    assert annotate(analyst) == 303

    (kept,) = Annotation.objects.all()
    assert (kept.day, kept.text) == (date(2026, 5, 4), "node swap")
    assert AuditEntry.objects.order_by("pk").last().action == "annotation.add"
    assert "Annotate a day" not in viewer.get(PAGE).content.decode()


def test_an_annotation_without_a_day_or_a_text_is_refused_in_words(moe):
    analyst = client_of(moe, Role.ANALYST)

    assert annotate(analyst, day="soon") == annotate(analyst, text=" ") == 303

    page = analyst.get(PAGE).content.decode()
    assert "Write a day as in" in page
    assert "Write something here." in page
    assert not Annotation.objects.exists()


def test_an_annotation_shows_in_the_list_with_its_author_and_its_owner_deletes_it(moe):
    annotate(client_of(moe, Role.ANALYST), text="price <b>change</b>")
    (kept,) = Annotation.objects.all()
    gone = f"/annotations/{kept.pk}/delete/"
    viewer, owner = client_of(moe, Role.VIEWER), client_of(moe, Role.OWNER)

    page = viewer.get(PAGE).content.decode()
    assert "price &lt;b&gt;change&lt;/b&gt;" in page
    assert gone not in page
    assert viewer.post(gone).status_code == 403
    assert gone in owner.get(PAGE).content.decode()
    assert owner.post(gone).status_code == 303
    assert "change&lt;/b&gt;" not in owner.get(PAGE).content.decode()
    assert AuditEntry.objects.order_by("pk").last().action == "annotation.delete"


def test_a_viewer_comments_and_deletes_its_own_but_nobody_elses(moe):
    viewer, owner = client_of(moe, Role.VIEWER), client_of(moe, Role.OWNER)
    viewer.post(f"{PAGE}comments/", {"text": "Why so late?"})
    owner.post(f"{PAGE}comments/", {"text": "A node was lost."})
    mine, theirs = Comment.objects.order_by("created_at")

    page = viewer.get(PAGE).content.decode()
    assert page.index("Why so late?") < page.index("A node was lost.")
    assert f"/comments/{mine.pk}/delete/" in page
    assert f"/comments/{theirs.pk}/delete/" not in page
    assert viewer.post(f"/comments/{theirs.pk}/delete/").status_code == 403
    assert viewer.post(f"/comments/{mine.pk}/delete/").status_code == 303
    assert "Why so late?" not in viewer.get(PAGE).content.decode()


def test_an_empty_comment_is_refused_in_words(moe):
    viewer = client_of(moe, Role.VIEWER)

    assert viewer.post(f"{PAGE}comments/", {"text": "  "}).status_code == 303
    assert "Write something here." in viewer.get(PAGE).content.decode()
    assert not Comment.objects.exists()


def test_marks_on_the_chart_prefer_what_people_said_and_stay_apart():
    day = date(2026, 5, 4)
    said = Annotation(day=day, text="a text that is much too long for a chart")
    events = [Happening(day=day + APART * step, label="restart") for step in range(9)]

    marks = markers_of([*events, Happening(day=day, label=said.text, annotation=said)])

    assert marks[0].day == day
    assert marks[0].label.endswith("…")
    assert len(marks) == len({mark.day for mark in marks}) == 6
    assert marks[1].day == events[-1].day


def test_marks_do_not_cover_each_others_words():
    day = date(2026, 5, 4)
    near = [Happening(day=day + APART * step, label="x" * 20) for step in range(6)]

    marks = markers_of(near, axis_days=122)  # a letter takes about a day

    days = sorted(mark.day for mark in marks)
    assert len(days) == 2
    assert (days[1] - days[0]).days >= 19

"""Addresses of the pages of allocation."""

from django.urls import URLPattern, URLResolver, path

from billing import allocation_views

urlpatterns: list[URLPattern | URLResolver] = [
    path("imports/rules/", allocation_views.rules_moved, name="import_rules"),
    path("allocation/", allocation_views.allocation, name="allocation"),
    path("allocation/new/", allocation_views.rule_new, name="allocation_new"),
    path("allocation/save/", allocation_views.rules_save, name="allocation_save"),
    path("allocation/unallocated/", allocation_views.unallocated, name="allocation_unallocated"),
    path("allocation/<int:position>/", allocation_views.rule_edit, name="allocation_edit"),
    path(
        "allocation/<int:position>/change/", allocation_views.rule_change, name="allocation_change"
    ),
]

"""Django's name for the room `planning`."""

from django.apps import AppConfig


class PlanningConfig(AppConfig):
    name = "planning"

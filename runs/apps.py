"""Django's name for the room `runs`."""

from django.apps import AppConfig


class RunsConfig(AppConfig):
    name = "runs"

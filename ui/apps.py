"""Django's name for the room `ui`."""

from django.apps import AppConfig


class UiConfig(AppConfig):
    name = "ui"

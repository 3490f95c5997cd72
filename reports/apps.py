"""Django's name for the room `reports`."""

from django.apps import AppConfig


class ReportsConfig(AppConfig):
    name = "reports"

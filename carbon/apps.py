"""Django's name for the room `carbon`."""

from django.apps import AppConfig


class CarbonConfig(AppConfig):
    name = "carbon"

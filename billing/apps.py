"""Django's name for the room `billing`."""

from django.apps import AppConfig


class BillingConfig(AppConfig):
    name = "billing"

"""Django's name for the room `audit`."""

from django.apps import AppConfig


class AuditConfig(AppConfig):
    name = "audit"

"""Django's name for the shell; makes the Celery app the current one in every process."""

from django.apps import AppConfig


class CostwatchConfig(AppConfig):
    name = "costwatch"

    def ready(self) -> None:
        from costwatch import celery  # noqa: F401  # importing it makes it Celery's current app

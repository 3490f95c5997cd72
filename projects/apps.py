"""Django's name for the room `projects`."""

from django.apps import AppConfig


class ProjectsConfig(AppConfig):
    name = "projects"

"""The lines of a plan in words."""

from django.utils.translation import gettext as _


def line_name(key: str, *, own_name: str = "") -> str:
    """The name of a line: the chapter's in the reader's language, an own line's as it was given."""
    return {
        "main_run": _("Main run"),
        "experiments": _("Experiments and debugging"),
        "preprocessing": _("Data preprocessing"),
        "distillation": _("Distillation and mid-training"),
        "evaluation": _("Continuous evaluation"),
        "contingency": _("Contingency"),
    }.get(key, own_name or key)

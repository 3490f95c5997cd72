"""Every row carries its organisation from the first day: make the first one."""

from django.db import migrations


def make_first(apps, schema_editor):
    organisation = apps.get_model("projects", "Organisation")
    if not organisation.objects.exists():
        organisation.objects.create(name="My organisation", slug="default")


class Migration(migrations.Migration):
    dependencies = [("projects", "0001_organisations_people_projects")]
    operations = [migrations.RunPython(make_first, migrations.RunPython.noop)]

from django.db import migrations


def ask_for_roll_ups(apps, schema_editor):
    """Daily costs of before know no rule, tags or measures: a job rolls every month up again."""
    daily_costs = apps.get_model("billing", "DailyCost").objects.order_by()
    jobs = apps.get_model("jobs", "Job").objects
    for organisation_id in daily_costs.values_list("organisation_id", flat=True).distinct():
        jobs.create(
            organisation_id=organisation_id,
            kind="billing.rebuild_daily_costs",
            scope="organisation",
            title="Roll daily costs up again",
            dedupe_key="rebuild",
        )


class Migration(migrations.Migration):

    dependencies = [
        ('billing', '0005_drop_one_match_rules'),
        ('jobs', '0001_jobs_and_outbox'),
    ]

    operations = [
        migrations.RunPython(ask_for_roll_ups, migrations.RunPython.noop),
    ]

"""Add how devices spent the energy of their hours."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("carbon", "0005_hours_say_resets_and_divergence"),
        ("runs", "0002_own_instance_types"),
    ]

    operations = [
        migrations.CreateModel(
            name="DeviceUseHour",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "device_id",
                        "hour",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("organisation_id", models.UUIDField()),
                ("site_id", models.UUIDField()),
                ("hour", models.DateTimeField()),
                ("sender_id", models.IntegerField()),
                ("seen_s", models.FloatField()),
                ("seen_j", models.FloatField()),
                ("idle_s", models.FloatField()),
                ("idle_j", models.FloatField()),
                ("throttled_s", models.FloatField()),
                ("throttled_j", models.FloatField()),
                ("capped_s", models.FloatField()),
                ("capped_j", models.FloatField()),
                ("busy_fraction", models.FloatField(null=True)),
                ("sm_clock_hz", models.FloatField(null=True)),
                ("power_limit_w", models.FloatField(null=True)),
                (
                    "device",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="runs.device",
                    ),
                ),
            ],
            options={
                "indexes": [models.Index(fields=["site_id", "hour"], name="use_hours_of_site")],
            },
        ),
    ]

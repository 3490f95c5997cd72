"""Let readings name their sender: of several senders of a device-second one counts."""

from django.db import migrations, models

FORWARD = """
ALTER TABLE carbon_powersample DROP CONSTRAINT carbon_powersample_pkey,
    ADD PRIMARY KEY (device_id, at, sender_id);
ALTER TABLE carbon_meteredinterval DROP CONSTRAINT carbon_meteredinterval_pkey,
    ADD PRIMARY KEY (device_id, start, "end", sender_id);
"""
BACKWARD = """
ALTER TABLE carbon_powersample DROP CONSTRAINT carbon_powersample_pkey,
    ADD PRIMARY KEY (device_id, at);
ALTER TABLE carbon_meteredinterval DROP CONSTRAINT carbon_meteredinterval_pkey,
    ADD PRIMARY KEY (device_id, start, "end");
"""


class Migration(migrations.Migration):
    dependencies = [("carbon", "0002_entries_are_append_only")]
    operations = [
        migrations.AddField(
            model_name="meteredinterval",
            name="sender_id",
            field=models.IntegerField(db_default=0),
        ),
        migrations.AddField(
            model_name="powersample",
            name="sender_id",
            field=models.IntegerField(db_default=0),
        ),
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunSQL(FORWARD, BACKWARD)],
            state_operations=[
                migrations.AlterField(
                    model_name="meteredinterval",
                    name="pk",
                    field=models.CompositePrimaryKey(
                        "device_id", "start", "end", "sender_id", serialize=False
                    ),
                ),
                migrations.AlterField(
                    model_name="powersample",
                    name="pk",
                    field=models.CompositePrimaryKey(
                        "device_id", "at", "sender_id", serialize=False
                    ),
                ),
            ],
        ),
    ]

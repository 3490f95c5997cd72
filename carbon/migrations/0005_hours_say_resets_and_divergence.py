"""What an hour's energy says of resets of the counter, and how far it is off integrated power."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("carbon", "0004_senders_intensity_instruments_locks")]

    operations = [
        migrations.AddField(
            model_name="energyhour",
            name="reset_millijoule",
            field=models.BigIntegerField(db_default=0),
        ),
        migrations.AddField(
            model_name="energyhour",
            name="divergence_fraction",
            field=models.FloatField(null=True),
        ),
    ]

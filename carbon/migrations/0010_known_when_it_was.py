"""Hours that a constant instant stored thirty years late are known since they were written."""

from django.db import migrations

# Instants counted from 1970 were stored as if from 2000: nothing that happened is known by 2045.
_MEND = """
UPDATE carbon_energyhour SET known_at = known_at - interval '946684800 seconds'
WHERE known_at > now() + interval '20 years'
"""


class Migration(migrations.Migration):
    dependencies = [("carbon", "0009_room_for_newest_readings")]
    operations = [migrations.RunSQL(_MEND, migrations.RunSQL.noop)]

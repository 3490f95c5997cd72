"""Leave room in the pages of rows that each booking changes: a change then stays on its page."""

from django.db import migrations

FORWARD = """
ALTER TABLE carbon_devicenow SET (fillfactor = 40);
ALTER TABLE carbon_jobsighting SET (fillfactor = 70);
"""
BACKWARD = """
ALTER TABLE carbon_devicenow RESET (fillfactor);
ALTER TABLE carbon_jobsighting RESET (fillfactor);
"""


class Migration(migrations.Migration):
    dependencies = [("carbon", "0008_signed_periods_never_change")]
    operations = [migrations.RunSQL(FORWARD, BACKWARD)]

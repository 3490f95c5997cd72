from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('billing', '0004_rules_to_conditions'),
    ]

    operations = [
        migrations.RemoveField(
            model_name='allocationrule',
            name='key',
        ),
        migrations.RemoveField(
            model_name='allocationrule',
            name='match',
        ),
        migrations.RemoveField(
            model_name='allocationrule',
            name='project',
        ),
        migrations.RemoveField(
            model_name='allocationrule',
            name='value',
        ),
    ]

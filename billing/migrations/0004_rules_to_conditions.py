from django.db import migrations


def rules_to_conditions(apps, schema_editor):
    """One condition and one whole target a rule; the one dataset of before is the billed one."""
    rule_model = apps.get_model("billing", "AllocationRule")
    target_model = apps.get_model("billing", "AllocationTarget")
    for rule in rule_model.objects.all():
        rule.conditions = [
            {"field": rule.match, "op": "is", "key": rule.key, "value": rule.value}
        ]
        rule.save(update_fields=["conditions"])
        target_model.objects.create(
            organisation_id=rule.organisation_id,
            rule=rule,
            position=1,
            weight=1,
            project_id=rule.project_id,
        )
    apps.get_model("billing", "BillingPeriod").objects.filter(dataset="charges").update(
        dataset="billed"
    )


def conditions_to_rules(apps, schema_editor):
    """What the older shape can hold: the first condition and the first project of each rule."""
    for rule in apps.get_model("billing", "AllocationRule").objects.prefetch_related("targets"):
        first, target = rule.conditions[0], rule.targets.order_by("position").first()
        if target.project_id is None:
            rule.delete()
            continue
        rule.match, rule.key, rule.value = first["field"][:12], first["key"], first["value"]
        rule.project_id = target.project_id
        rule.save()
    apps.get_model("billing", "BillingPeriod").objects.filter(dataset="billed").update(
        dataset="charges"
    )


class Migration(migrations.Migration):

    dependencies = [
        ('billing', '0003_sources_shares_measures'),
    ]

    operations = [
        migrations.RunPython(rules_to_conditions, conditions_to_rules),
    ]

"""Tables of allocation: versioned rules, and the shares of what they match."""

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from projects.models import Organisation, Project


class RuleSet(models.Model):
    """All allocation rules in force from `created_at` on; the highest number is in force now."""

    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="+")
    number = models.PositiveIntegerField()
    created_at = models.DateTimeField(auto_now_add=True)
    created_by = models.CharField(max_length=200)

    class Meta:
        ordering = ["number"]
        constraints = [
            models.UniqueConstraint(
                fields=["organisation", "number"], name="one_rule_set_per_number"
            )
        ]

    def __str__(self) -> str:
        return f"rules {self.number}"


class AllocationRule(models.Model):
    """Charges that meet all `conditions` go to the targets; in a set the lowest position wins.

    `conditions` is a list of {"field", "key", "op", "value"}: records.RuleCondition.
    """

    class Match(models.TextChoices):
        SUB_ACCOUNT = "sub_account", _("Account")
        TAG = "tag", _("Tag")
        RESOURCE = "resource", _("Resource")

    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="+")
    rule_set = models.ForeignKey(RuleSet, on_delete=models.CASCADE, related_name="rules")
    position = models.PositiveIntegerField()
    name = models.CharField(max_length=120, blank=True)
    conditions = models.JSONField(default=list)

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(fields=["rule_set", "position"], name="one_rule_per_position"),
        ]

    def __str__(self) -> str:
        return self.name or f"rule {self.position}"


class AllocationTarget(models.Model):
    """A share of what a rule matches; no project means unallocated, and on purpose."""

    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="+")
    rule = models.ForeignKey(AllocationRule, on_delete=models.CASCADE, related_name="targets")
    position = models.PositiveIntegerField()
    weight = models.DecimalField(max_digits=20, decimal_places=6, default=1)
    project = models.ForeignKey(Project, on_delete=models.PROTECT, null=True, related_name="+")
    run_key = models.CharField(max_length=120, blank=True)  # opaque here: runs knows it
    team = models.CharField(max_length=120, blank=True)
    plan_line_key = models.CharField(max_length=120, blank=True)  # opaque here: planning knows it

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(fields=["rule", "position"], name="one_target_per_position"),
            models.CheckConstraint(condition=Q(weight__gt=0), name="target_weight_positive"),
        ]

    def __str__(self) -> str:
        return f"{self.weight} to {self.project_id}"

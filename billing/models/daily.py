"""The roll-up of charges by day: disposable, rebuilt identically from the lake and the rules."""

from django.db import models

from billing.models.allocation import RuleSet
from billing.models.charges import PeriodVersion
from projects.models import Organisation, Project


class DailyCost(models.Model):
    """The roll-up of published versions: disposable, rebuilt identically from lake and rules.

    What a version already vouches for is not checked again with every row, nor indexed twice.
    """

    organisation = models.ForeignKey(
        Organisation,
        on_delete=models.PROTECT,
        related_name="+",
        db_index=False,
        db_constraint=False,
    )
    version = models.ForeignKey(PeriodVersion, on_delete=models.CASCADE, related_name="daily_costs")
    rule_set = models.ForeignKey(
        RuleSet,
        on_delete=models.PROTECT,
        null=True,
        related_name="+",
        db_index=False,
        db_constraint=False,
    )
    dataset = models.CharField(max_length=30, default="billed")
    day = models.DateField()
    rule_position = models.PositiveIntegerField(null=True)  # the rule that gave it away
    project = models.ForeignKey(
        Project,
        on_delete=models.PROTECT,
        null=True,
        related_name="+",
        db_index=False,
        db_constraint=False,
    )
    run_key = models.CharField(max_length=120, null=True)  # noqa: DJ001  # missing is not empty
    team = models.CharField(max_length=120, null=True)  # noqa: DJ001
    plan_line_key = models.CharField(max_length=120, null=True)  # noqa: DJ001
    provider_name = models.TextField(null=True)  # noqa: DJ001
    service_name = models.TextField(null=True)  # noqa: DJ001
    service_category = models.TextField(null=True)  # noqa: DJ001
    region_id = models.TextField(null=True)  # noqa: DJ001
    sub_account_id = models.TextField(null=True)  # noqa: DJ001
    charge_category = models.TextField(null=True)  # noqa: DJ001
    x_cost_class = models.CharField(max_length=40)
    x_accelerator = models.CharField(max_length=60, null=True)  # noqa: DJ001
    billing_currency = models.CharField(max_length=3)
    billed_cost = models.DecimalField(max_digits=38, decimal_places=18, null=True)
    effective_cost = models.DecimalField(max_digits=38, decimal_places=18, null=True)
    list_cost = models.DecimalField(max_digits=38, decimal_places=18, null=True)
    contracted_cost = models.DecimalField(max_digits=38, decimal_places=18, null=True)
    has_tags = models.BooleanField(default=False)
    is_estimated = models.BooleanField(default=False)  # priced by us: the bill stated no cost
    accelerator_h = models.DecimalField(max_digits=38, decimal_places=18, null=True)
    idle_accelerator_h = models.DecimalField(max_digits=38, decimal_places=18, null=True)
    storage_tb_month = models.DecimalField(max_digits=38, decimal_places=18, null=True)
    requests = models.DecimalField(max_digits=38, decimal_places=18, null=True)
    transfer_bytes = models.DecimalField(max_digits=38, decimal_places=18, null=True)
    rows = models.BigIntegerField()

    class Meta:
        indexes = [
            models.Index(fields=["organisation", "day"]),
            models.Index(fields=["project", "day"]),
        ]

    def __str__(self) -> str:
        return f"{self.day} {self.x_cost_class}"

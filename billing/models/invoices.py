"""What a provider says a month or an invoice comes to, to be compared with its charges."""

import uuid

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from billing.models.charges import Source
from projects.models import Organisation


class InvoiceTotal(models.Model):
    """An outside figure: never changed, only withdrawn."""

    class Origin(models.TextChoices):
        ENTERED = "entered", _("Entered")
        MANIFEST = "manifest", _("Taken from the manifest")

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="+")
    source = models.ForeignKey(Source, on_delete=models.PROTECT, related_name="invoice_totals")
    start = models.DateField()  # the first day of the billing month
    invoice_id = models.CharField(max_length=120, blank=True)  # empty = the whole month
    currency = models.CharField(max_length=3)
    amount = models.DecimalField(max_digits=38, decimal_places=18)
    tolerance = models.DecimalField(max_digits=38, decimal_places=18, default=0)
    origin = models.CharField(max_length=10, choices=Origin.choices, default=Origin.ENTERED)
    note = models.TextField(blank=True)
    recorded_at = models.DateTimeField(auto_now_add=True)
    recorded_by = models.CharField(max_length=200)
    withdrawn_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-start", "invoice_id"]
        constraints = [
            models.UniqueConstraint(
                fields=["source", "start", "invoice_id", "currency"],
                condition=Q(withdrawn_at=None),
                name="one_invoice_total_a_month_invoice_and_currency",
            ),
            models.CheckConstraint(condition=Q(tolerance__gte=0), name="tolerance_not_negative"),
        ]

    def __str__(self) -> str:
        return f"{self.start:%Y-%m} {self.invoice_id} {self.amount} {self.currency}"

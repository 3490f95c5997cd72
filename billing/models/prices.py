"""The organisation's own dated prices and exchange rates."""

import uuid

from django.db import models
from django.db.models import Q

from projects.models import Organisation


class PriceBook(models.Model):
    """A price list of the organisation's own: a contract, a provider's offer, a rate card."""

    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=120)
    source = models.CharField(max_length=300, blank=True)
    currency = models.CharField(max_length=3, default="USD")  # of prices that name none
    note = models.TextField(blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    # a book that a provider's price API fills: which one, what it is asked, how it went last
    feed = models.CharField(max_length=20, blank=True)
    feed_settings = models.JSONField(default=dict)
    refreshed_at = models.DateTimeField(null=True)
    refresh_error = models.JSONField(null=True)

    class Meta:
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["organisation", "name"], name="price_book_name_once_per_organisation"
            )
        ]

    def __str__(self) -> str:
        return self.name


class Price(models.Model):
    """What one unit costs from a day on; never changed, only succeeded or withdrawn."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="+")
    book = models.ForeignKey(PriceBook, on_delete=models.PROTECT, related_name="prices")
    cost_class = models.CharField(max_length=40)
    provider = models.CharField(max_length=40, blank=True)
    region = models.CharField(max_length=60, blank=True)
    accelerator_key = models.CharField(max_length=60, blank=True)
    instance_type = models.CharField(max_length=120, blank=True)
    purchase = models.CharField(max_length=20)
    unit = models.CharField(max_length=20)
    amount = models.DecimalField(max_digits=38, decimal_places=18)
    currency = models.CharField(max_length=3)
    valid_from = models.DateField()
    valid_to = models.DateField(null=True)  # the first day that is out
    source = models.CharField(max_length=300)
    source_date = models.CharField(max_length=10, blank=True)  # 2026, 2026-03 or 2026-03-31
    note = models.TextField(blank=True)
    recorded_at = models.DateTimeField(auto_now_add=True)
    recorded_by = models.CharField(max_length=200)
    withdrawn_at = models.DateTimeField(null=True)  # it was wrong: it counts on no day

    class Meta:
        ordering = ["cost_class", "provider", "region", "accelerator_key", "valid_from"]
        constraints = [
            models.UniqueConstraint(
                fields=[
                    "book",
                    "cost_class",
                    "provider",
                    "region",
                    "accelerator_key",
                    "instance_type",
                    "purchase",
                    "valid_from",
                ],
                condition=Q(withdrawn_at=None),
                name="one_price_a_key_and_day",
            ),
            models.CheckConstraint(condition=Q(amount__gte=0), name="price_not_negative"),
            models.CheckConstraint(
                condition=Q(valid_to=None) | Q(valid_to__gt=models.F("valid_from")),
                name="price_ends_after_it_begins",
            ),
        ]
        indexes = [models.Index(fields=["organisation", "cost_class", "valid_from"])]

    def __str__(self) -> str:
        return f"{self.cost_class} {self.amount} {self.currency}"


class ExchangeRate(models.Model):
    """How much of `quote` one `base` was worth on a day; never changed, only withdrawn."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    organisation = models.ForeignKey(Organisation, on_delete=models.PROTECT, related_name="+")
    base = models.CharField(max_length=3)
    quote = models.CharField(max_length=3)
    rate = models.DecimalField(max_digits=38, decimal_places=18)
    on_date = models.DateField()
    source = models.CharField(max_length=300)
    recorded_at = models.DateTimeField(auto_now_add=True)
    recorded_by = models.CharField(max_length=200)
    withdrawn_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["base", "quote", "-on_date"]
        constraints = [
            models.UniqueConstraint(
                fields=["organisation", "base", "quote", "on_date"],
                condition=Q(withdrawn_at=None),
                name="one_exchange_rate_a_pair_and_day",
            ),
            models.CheckConstraint(condition=Q(rate__gt=0), name="exchange_rate_positive"),
        ]

    def __str__(self) -> str:
        return f"{self.base}/{self.quote} {self.on_date}"

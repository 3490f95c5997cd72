"""What people type to connect a price feed. No rule of who may, none of what a region is."""

from django import forms
from django.utils.translation import gettext_lazy as _

from billing.price_feeds.contract import (
    ACCELERATORS,
    FEED_NAMES,
    FEED_SERVICES,
    STORAGE,
    TRANSFER,
    FeedSettings,
)

SERVICE_NAMES = {
    ACCELERATORS: _("Accelerators"),
    STORAGE: _("Storage and requests"),
    TRANSFER: _("Transfer to the internet and between regions"),
}


class PriceFeedForm(forms.Form):
    """A provider's price list, and what of it."""

    feed = forms.ChoiceField(label=_("Price list"), choices=list(FEED_NAMES.items()))
    book = forms.CharField(
        label=_("Price book"),
        max_length=120,
        help_text=_("A new name makes a book; the feed alone writes to it."),
    )
    regions = forms.CharField(
        label=_("Regions"),
        max_length=2000,
        help_text=_("As the provider writes them, with commas between: us-east-1, us-west-2."),
    )
    services = forms.MultipleChoiceField(
        label=_("Prices of"),
        choices=[(key, SERVICE_NAMES[key]) for key in FEED_SERVICES],
        initial=list(FEED_SERVICES),
        widget=forms.CheckboxSelectMultiple,
    )

    def wish(self) -> FeedSettings:
        """What the feed shall be asked for."""
        regions = self.cleaned_data["regions"].replace(",", " ").split()
        return FeedSettings(regions=tuple(regions), services=tuple(self.cleaned_data["services"]))

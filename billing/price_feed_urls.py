"""Addresses of the price feeds' pages; `billing.urls` mounts them."""

from django.urls import URLPattern, URLResolver, path

from billing import price_feed_views

urlpatterns: list[URLPattern | URLResolver] = [
    path("prices/feeds/new/", price_feed_views.price_feed_new, name="price_feed_new"),
    path(
        "prices/feeds/<int:book_id>/refresh/",
        price_feed_views.price_feed_refresh,
        name="price_feed_refresh",
    ),
    path(
        "prices/feeds/<int:book_id>/disconnect/",
        price_feed_views.price_feed_disconnect,
        name="price_feed_disconnect",
    ),
]

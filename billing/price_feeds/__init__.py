"""Readers of the providers' price APIs: each ends in FeedPrice records; nothing is stored here."""

"""Tests that take their time or need programs of others; docs/remote-write.md says how to run."""

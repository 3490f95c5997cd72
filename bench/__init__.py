"""Benchmarks: each states a ratio against a reference that it measures in the same run."""

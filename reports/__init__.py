"""Reads only: the portfolio, the project page, first-run."""

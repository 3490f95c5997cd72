"""Charges: sources, deliveries, versioned billing periods, daily costs."""

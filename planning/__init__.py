"""Intent: estimates, plans, and how actuals burn them down."""

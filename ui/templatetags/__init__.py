"""Template tags of the design system."""

"""How things look: charts, quantity tags, the design system. Knows no table."""

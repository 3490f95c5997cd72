"""Power, energy and emissions, with their factors."""

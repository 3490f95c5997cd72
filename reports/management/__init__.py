"""Commands of the room `reports`."""

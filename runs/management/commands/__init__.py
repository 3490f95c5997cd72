"""Commands of the room `carbon`."""

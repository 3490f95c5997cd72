"""Template words of the room `carbon`."""

"""Pages of the room `carbon`: sites with their factors, power deliveries."""

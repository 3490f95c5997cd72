"""Pages of the room `carbon`: sites and their factors, power deliveries."""

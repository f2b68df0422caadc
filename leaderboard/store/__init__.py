"""Store: one interface, several implementations with the same atomicity."""

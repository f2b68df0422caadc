"""Where everything is kept: one interface, several implementations with the same atomicity."""

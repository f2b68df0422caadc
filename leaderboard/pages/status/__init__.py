"""How the service is doing, for everybody."""

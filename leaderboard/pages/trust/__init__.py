"""The trust checks, shown."""

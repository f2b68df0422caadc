"""Page of the service's status, for everybody."""

"""What each route of the API answers, as tables."""

"""The engine that spreads batches over the actors of a Ray cluster."""

"""Asking a built-in metric in this process: the cheapest path it offers, counted exactly."""

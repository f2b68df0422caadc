"""Service routes of site and workers: health, metrics, webhooks, live progress."""

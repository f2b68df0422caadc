"""The model track: text-to-image models, judged by metrics that earned it."""

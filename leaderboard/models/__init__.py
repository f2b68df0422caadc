"""The model track: text-to-image models, judged by qualified metrics."""

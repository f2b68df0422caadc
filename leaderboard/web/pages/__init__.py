"""Pages of the site: one thin Gradio page in each module."""

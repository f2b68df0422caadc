"""The website: its templates, style sheet and script, and the frame around every page."""

"""Heads of pages for shared links: title, summary and a picture."""

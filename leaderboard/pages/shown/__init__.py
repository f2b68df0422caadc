"""Pieces that several pages are drawn with."""

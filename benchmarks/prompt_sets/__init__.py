"""Prompts that text-to-image models draw: one file for each set."""

"""Families of metrics, a file each with a `FAMILY`; found by name, imported only when used."""

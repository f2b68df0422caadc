"""Code inside a box: bound into it by itself, so only the standard library is imported here."""

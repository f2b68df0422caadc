"""A whole store in one file: made while the store is in use, checked, and put back."""

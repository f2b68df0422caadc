"""Pages that explain: methods, and known errors."""

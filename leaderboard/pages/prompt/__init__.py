"""One prompt, and what models drew of it."""

"""Settings of Assay: their model, their sources, and the rotation of secrets."""

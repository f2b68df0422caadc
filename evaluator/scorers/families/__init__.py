"""One file per family, each with a `FAMILY`; found by name, imported only when it is used."""

"""New revisions and versions: what is run again, where old results stay, and what moved."""

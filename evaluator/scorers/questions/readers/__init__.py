"""Question files of releases, read as ours."""

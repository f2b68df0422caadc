"""Disk, logs and health of a worker."""

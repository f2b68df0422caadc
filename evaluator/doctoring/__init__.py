"""Diagnostics of `doctor`, part by part: this machine, the store, the queue, the boards."""

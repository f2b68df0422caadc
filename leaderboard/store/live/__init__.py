"""Live state of workers between commits: heartbeats and logs."""

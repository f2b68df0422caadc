"""A visitor's own submissions, and what operators see and do."""

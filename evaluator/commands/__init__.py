"""The command line: one file per command; heavy imports happen inside the commands."""

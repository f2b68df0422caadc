"""Running a submitted module in a process of its own, and taking nothing from it but floats."""

"""Two text-to-image models against each other."""

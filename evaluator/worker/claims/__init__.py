"""Claims of a worker: made, held and released, with its sign of life."""

"""Templates that `init` writes: skeletons that run as they are. Not part of the evaluator."""

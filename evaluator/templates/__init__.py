"""What `init` writes into a new folder: skeletons that run as they are. Not part of the evaluator."""

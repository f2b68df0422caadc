"""What is kept and shown: the store, the records in it, the boards and the pages.

Imports `benchmarks`, never `evaluator` or the app; needs no torch.
"""

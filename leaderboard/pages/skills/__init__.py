"""The skill explorer: which metric for counting, and at what cost."""

"""GenAI-Bench ranking: which of nine images of one prompt is the best (Li et al. 2024)."""

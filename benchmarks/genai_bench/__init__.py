"""GenAI-Bench (Li et al. 2024): images of six models, each rated by three people."""

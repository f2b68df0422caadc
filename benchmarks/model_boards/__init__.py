"""Text-to-image models held against each other by the scores of metrics: means, tests, consensus."""

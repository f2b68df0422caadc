"""From the answers to generated questions to one score per image.

Metrics of the TIFA and DSG kind ask a model questions about an image. What they share is here as
pure functions: when an answer is correct, and how the answers of one image become its score.
"""

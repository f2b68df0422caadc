"""Can one trust the order in which a metric puts text-to-image models?

The measures of Re-Thinking (Zhang and Wan 2025, arXiv:2506.08480) for any set of scored
generations: ranks with each seed, what a one-step change of the pixels does to the score, and
whether the difference of two models is significant.
"""

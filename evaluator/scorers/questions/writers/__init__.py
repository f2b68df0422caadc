"""Writers of questions: what a language model is told, and how its lines are read.

They run before images are scored, never while. The instructions are worded here; those of the
papers are not copied, so questions differ from released ones as two runs of a language model do.
"""

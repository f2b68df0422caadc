"""Questions about prompts: their files, and how answers to them become scores.

Metrics that ask questions (TIFA, DSG, Gecko, PN-VQA, VQ2, BVQA) read them from a file, one JSON
object per line. The file is made once per prompt set, by a language model or from a release, and
looked at by people; no question is written while images are scored.
"""

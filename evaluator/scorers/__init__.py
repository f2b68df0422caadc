"""The built-in metrics: a handful of families, and a table of rows.

A family is one file in `families/`; a row, in a file of `rows/`, is one metric of a family: a
checkpoint and the options of a formula. A new row needs no code.
"""

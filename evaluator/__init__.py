"""Evaluator: intake, isolation, scoring, judging and publication of submissions."""

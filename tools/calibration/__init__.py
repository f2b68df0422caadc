"""Calibration study: coverage of the intervals and error rates of the tests, by simulation."""

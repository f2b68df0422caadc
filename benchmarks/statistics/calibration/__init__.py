"""Do the intervals cover and do the tests reject as they should? Simulated, with known truth."""

"""The side of a box that trusts nothing from it: one job from its start to its end."""

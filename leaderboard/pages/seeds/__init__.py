"""How models vary over their seeds."""

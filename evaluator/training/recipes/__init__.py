"""Recipes: each module defines `RECIPE`, a `Recipe`."""

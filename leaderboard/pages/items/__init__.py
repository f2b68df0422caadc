"""The item browser: what people said and what metrics scored, case by case."""

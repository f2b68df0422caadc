"""From questions to scores: what is asked in which order, kept, and resumed."""

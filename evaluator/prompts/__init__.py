"""Construction of prompt sets: choosing among many prompts, as EvalMuse-40K was made."""

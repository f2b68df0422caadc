"""Results in the forms of others, over the read model: Every Eval Ever, and logs of Inspect."""

"""TIFA160: 160 prompts, five text-to-image models, two independent sets of human ratings."""

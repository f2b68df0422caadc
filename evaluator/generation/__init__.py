"""Images for the prompts of a benchmark, with any text-to-image pipeline of diffusers."""

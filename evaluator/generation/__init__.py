"""Images for the prompts of a benchmark, by pipelines of diffusers or by endpoints."""

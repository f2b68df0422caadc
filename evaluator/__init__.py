"""How submissions are run: taking them, isolating them, scoring, judging, publishing."""

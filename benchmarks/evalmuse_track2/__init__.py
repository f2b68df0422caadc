"""EvalMuse-Structure (NTIRE 2025, track 2): distorted regions and structural quality."""

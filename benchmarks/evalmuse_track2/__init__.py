"""EvalMuse-Structure (NTIRE 2025, track 2): where is an image distorted, and how badly?"""

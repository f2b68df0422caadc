"""EvalMuse-40K: does a metric follow human ratings of whole prompts and of their elements?"""

"""EvalMuse structure test: does a model notice what is malformed in a generated image?"""

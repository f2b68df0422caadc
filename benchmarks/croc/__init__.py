"""CROC: does a metric prefer the matching side of a contrast pair of prompts and images?"""

"""Gecko: does a metric follow human ratings in four annotation templates, skill by skill?"""

"""The work of commands with trained models, as functions of sources: predict, evaluate, compare, explain.

This package may import training and what is below it. What a new command does is a function in a file of its own.
"""

"""Functions behind the commands for trained models: predict, evaluate, compare, explain.

This package may import training and the layers below it. A new command gets a function in a new module.
"""

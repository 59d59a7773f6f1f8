"""Litmus tests: small random CUDA programs, run with one stream held shut, against what the model says must, may and will finish.

In: a seed. Out: programs, predictions, runs, disagreements made small. May import: ``cuda_model``, ``verify`` (its lab), ``support``.
"""

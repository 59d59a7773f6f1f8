"""Litmus tests: small random CUDA programs, run with one stream held shut, against what the model says must, may and will finish."""

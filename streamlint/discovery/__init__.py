"""Which files belong to a run: paths and patterns, words of CUDA, and files that others lead to."""

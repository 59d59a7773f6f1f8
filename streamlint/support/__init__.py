"""What every folder may use and what knows nothing of CUDA: dataclasses, lines, TOML, files read and written, git, crash isolation.

Stands on no other folder; notebooks are asked for only where a file is one.
"""

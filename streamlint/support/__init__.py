"""What every folder may use: dataclasses, lines, TOML, files read and written, git, crash isolation, the words that users declare.

Stands on no other folder; notebooks are asked for only where a file is one.
"""

"""The commands, a module each with ``main(words) -> exit code``. Only the module of the command that was called is imported.

In: words of the command line. Out: text and an exit code. The top of the package: may import every other folder.
"""

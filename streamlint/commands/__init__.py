"""The commands, a module each with ``main(words) -> exit code``. Only the module of the command that was called is imported."""

"""Checks the linter's predictions on a GPU: gates hold a stream shut, and who finishes all the same is the answer.

``criteria`` turns numbers into verdicts and needs no GPU. ``lab`` and ``experiments`` produce the numbers, inside a child process
(``child``) that ``watchdog`` kills when it hangs. ``templates`` holds the code under test. ``command`` is what ``streamlint verify`` runs.
Nothing here imports the linter's front ends.
"""

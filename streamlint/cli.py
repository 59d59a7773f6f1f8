"""Arguments in, exit code out."""

from __future__ import annotations

import contextlib
import errno
import importlib
import os
import sys

from streamlint import TYPE_CHECKING, __version__
from streamlint.support.errors import StreamlintError, did_you_mean
from streamlint.support.lazy import lazy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from streamlint.report import terminal
    from streamlint.support import guard
else:
    (terminal,) = lazy("streamlint.report", "terminal")
    (guard,) = lazy("streamlint.support", "guard")

COMMANDS = {
    "check": ("streamlint.commands.check", "find misuse in files and folders"),
    "init": ("streamlint.commands.init", "write a configuration for what a project holds"),
    "merge": ("streamlint.commands.merge", "join the reports of `check --shard` runs"),
    "verify": ("streamlint.commands.verify", "test the rules' predictions on this machine's GPU"),
    "trace": ("streamlint.commands.trace", "what findings cost in a recorded run"),
    "litmus": ("streamlint.commands.litmus", "hold the CUDA model against this machine's GPU"),
    "evidence": ("streamlint.commands.evidence", "what was verified, where, when"),
    "server": ("streamlint.commands.server", "serve an editor by the Language Server Protocol"),
    "rule": ("streamlint.commands.rule", "explain rules"),
    "rules": ("streamlint.commands.rules", "list the rules, and which are on here"),
    "models": ("streamlint.commands.models", "list and explain the models of library calls"),
    "clean": ("streamlint.commands.clean", "empty the cache"),
    "debug": ("streamlint.commands.debug", "show what streamlint makes of the code"),
    "generate-shell-completion": ("streamlint.commands.completion", "print a completion script for a shell"),
}
ALIASES = {"lint": "check", "explain": "rule"}
# Words for a command that other linters have, and what is the same here.
ELSEWHERE = {
    "scan": "check",
    "analyze": "check",
    "run": "check",
    "linter": "rules",
    "version": "--version",
    "lsp": "server",
    "cache": "clean",
}
NEED_POSIX = ("verify", "litmus")  # programs that hang on the GPU are ended as a process group
FAILED = 2
INTERRUPTED = 130
BROKEN_PIPE = 141
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code: 0 clean, 1 findings, 2 the linter could not do its work."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # the caller has closed it
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8"))
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # names and sources may hold what the terminal cannot show
    try:
        if words:
            words[0] = ALIASES.get(words[0], words[0])
        if arguments is None and words[:1] == ["check"]:
            return guard.supervised(lambda: _run(words))
        return _run(words)
    except KeyboardInterrupt:
        return INTERRUPTED


def _run(words: list[str]) -> int:
    try:
        code = _dispatch(words)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _let_go()
        return BROKEN_PIPE
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        _let_go()
        with contextlib.suppress(OSError):
            print(f"streamlint: what was found cannot be written: {error.strerror}", file=sys.stderr)
        return FAILED
    return code


def _let_go() -> None:
    """Nobody takes the output any more. What is still buffered must not raise once more when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _dispatch(words: list[str]) -> int:
    if words and words[0] in ("--version", "-V"):
        print(f"streamlint {__version__}")
        return 0
    if not words or words[0] in ("--help", "-h", "help"):
        print(_usage(), file=sys.stdout if words else sys.stderr)
        return 0 if words else FAILED
    if words[0] not in COMMANDS:
        return _unknown(words[0])
    if words[0] in NEED_POSIX and sys.platform == "win32":
        print(f"streamlint: `{words[0]}` does not run on Windows; use Linux or WSL 2. `check` runs on Windows", file=sys.stderr)
        return FAILED
    return _command(words[0], words[1:])


def _command(name: str, words: list[str]) -> int:
    module = importlib.import_module(COMMANDS[name][0])
    try:
        code: int = module.main(words)
    except StreamlintError as error:
        print(f"streamlint: {_printable(str(error))}", file=sys.stderr)
        return FAILED
    except SystemExit as error:  # argparse has said why
        return error.code if isinstance(error.code, int) else FAILED
    except Exception as error:
        if isinstance(error, BrokenPipeError) or (isinstance(error, OSError) and error.errno in NO_ROOM):
            raise
        if isinstance(error, FileNotFoundError) and not _is_somewhere():
            print("streamlint: the folder that it was started in is gone", file=sys.stderr)
            return FAILED
        import traceback  # start-up: for faults alone

        print(_printable(traceback.format_exc()), end="", file=sys.stderr)
        print("streamlint: internal error, nothing is known about the code; please report the lines above", file=sys.stderr)
        return FAILED
    return code


def _is_somewhere() -> bool:
    """Whether relative paths mean anything: the current folder may be deleted at any moment."""
    try:
        os.getcwd()
    except OSError:
        return False
    return True


def _usage() -> str:
    room = max(map(len, COMMANDS))
    rows = "\n".join(f"  {name:<{room}}  {summary}" for name, (_, summary) in COMMANDS.items())
    aliases = "\n".join(f"  {name:<{room}}  {command}" for name, command in ALIASES.items())
    return (
        "usage: streamlint COMMAND [OPTION]...\n\n"
        f"A linter for CUDA stream misuse in Python and C++.\n\ncommands:\n{rows}\n\n"
        f"aliases:\n{aliases}\n\n"
        "options:\n  -h, --help     show this help, or that of a command after its name\n  -V, --version  show the version\n\n"
        "examples:\n  streamlint check src       lint a folder\n  streamlint check --help    all options of check\n"
        "  streamlint rule SL005      a rule's page\n  streamlint verify          what the rules claim, on this machine's GPU"
    )


def _unknown(word: str) -> int:
    kind = "option" if word.startswith("-") else "command"
    known = ("--help", "--version") if kind == "option" else (*COMMANDS, *ALIASES)
    hint = f"; did you mean '{ELSEWHERE[word]}'?" if word in ELSEWHERE else did_you_mean(word, known)
    if kind == "command" and os.path.exists(word):
        hint = f"; to lint it, run 'streamlint check {word}'"
    print(_printable(f"streamlint: unknown {kind} '{word}'{hint}", on_one_line=True), file=sys.stderr)
    return FAILED


def _printable(text: str, *, on_one_line: bool = False) -> str:
    """A text as the terminal may show it."""
    return terminal.line(text) if on_one_line else terminal.printable(text)

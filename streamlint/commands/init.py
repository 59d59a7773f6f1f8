"""``streamlint init``: a commented configuration for what it finds in a project."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from streamlint import TYPE_CHECKING
from streamlint.commands.init_place import HEAD, placed
from streamlint.commands.init_text import table
from streamlint.commands.parser import Parser
from streamlint.commands.reporting import count_of, write
from streamlint.config.settings import CONFIGURATIONS, Resolver, has_table
from streamlint.discovery.survey import Survey, survey
from streamlint.report.terminal import line
from streamlint.support.errors import ConfigError

if TYPE_CHECKING:
    import argparse

EXAMPLES = (
    ("streamlint init", "into pyproject.toml, or streamlint.toml"),
    ("streamlint init --dry-run", "show what would be written"),
    ("streamlint init --standalone native", "native/streamlint.toml"),
)
STANDALONE, PROJECT = "streamlint.toml", "pyproject.toml"
HOOK = ".pre-commit-config.yaml"
# As in `.pre-commit-hooks.yaml`, but by the command that is installed: it works wherever `streamlint init` does, without an address.
_HOOK = {
    "name": "streamlint",
    "entry": "streamlint check --force-exclude",
    "language": "system",
    "types_or": "[python, jupyter, cython, c, c++, cuda]",
    "require_serial": "true",
}


def build_parser() -> Parser:
    """The parser of ``init``."""
    parser = Parser("init", "Write a commented configuration for what a project holds.", EXAMPLES)
    parser.add_argument("folder", nargs="?", default=".", metavar="FOLDER", help="the project's folder (default: .)")
    parser.add_argument("--dry-run", action="store_true", help="print the configuration, and write nothing")
    parser.add_argument("--force", action="store_true", help="replace the configuration that is there")
    parser.add_argument("--standalone", action="store_true", help=f"write {STANDALONE}, also beside {PROJECT}")
    return parser


def main(words: list[str]) -> int:
    """Look, write, and say what comes next."""
    options = build_parser().read(words)
    found = survey(Path(options.folder))
    target = _target(options)
    text = table(found, _above(target))
    into = target.name == PROJECT
    data = placed(target, text) if into else text.encode()
    if options.dry_run:
        print(HEAD + text if into else text, end="")
        needed = "; it holds a configuration, so that --force is needed" if has_table(target) and not options.force else ""
        print(f"streamlint: would write {line(str(target))}{needed}", file=sys.stderr)
        return 0
    write(str(target), data)
    print(f"wrote {'[tool.streamlint] to ' if into else ''}{line(str(target))}; {_summary(found)}\n\n{_next(options.folder)}")
    return 0


def _target(options: argparse.Namespace) -> Path:
    """The file to write.

    Raises ConfigError where a configuration of ours is there already, and may not be replaced.
    """
    folder = Path(options.folder)
    there = next((folder / name for name in CONFIGURATIONS if has_table(folder / name)), None)
    if there is None:
        return folder / (PROJECT if (folder / PROJECT).is_file() and not options.standalone else STANDALONE)
    if not options.force and not options.dry_run:
        raise ConfigError(f"{there}: {'[tool.streamlint] is' if there.name == PROJECT else 'is'} there already; --force replaces it")
    if options.standalone and there.name == PROJECT:
        raise ConfigError(f"{there}: has a table [tool.streamlint], which {STANDALONE} would hide; take it out first")
    return there


def _above(target: Path) -> str | None:
    """The configuration further up that has been in force so far, as seen from the folder of the new one."""
    folder = target.absolute().parent
    if has_table(target):
        return None
    try:
        source = Resolver().of_folder(folder.parent).source
    except ConfigError:  # it holds for nobody
        return None
    return Path(os.path.relpath(source, folder)).as_posix() if source else None


def _summary(found: Survey) -> str:
    count = count_of(sum(found.languages.values()), "file")
    uses = ", ".join(found.libraries) or "none"
    return f"{count} in Python, Cython or C++, libraries: {uses}, excluded: {', '.join(found.proposals) or 'nothing more than by default'}"


def _next(folder: str) -> str:
    """The commands to go on with, and the hook for pre-commit."""
    check = "streamlint check" if folder == "." else f"streamlint check {folder}"
    steps = (
        ("streamlint rules", "which rules are on"),
        (check, "what is found today"),
        (f"{check} --write-baseline known.json", 'accept it: baseline = "known.json" then hides it'),
    )
    room = max(len(command) for command, _ in steps)
    hook = Path(folder, HOOK)
    return "\n".join(
        [
            "next:",
            *(f"  {command:<{room}}  {tells}" for command, tells in steps),
            "",
            f"{'add to the repos of' if hook.exists() else 'for pre-commit, write'} {line(str(hook))}:",
            *([] if hook.exists() else ["repos:"]),
            "  - repo: local",
            "    hooks:",
            "      - id: streamlint",
            *(f"        {key}: {value}" for key, value in _HOOK.items()),
        ]
    )

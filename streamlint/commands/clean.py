"""``streamlint clean``."""

from __future__ import annotations

import sys
from pathlib import Path

from streamlint.cache.store import clean, folder_of
from streamlint.commands.parser import Parser
from streamlint.config.settings import Resolver
from streamlint.report.terminal import line
from streamlint.support.errors import ConfigError

EXAMPLES = (
    ("streamlint clean", "the cache that `streamlint check` uses here"),
    ("streamlint clean --cache-dir .cache", "another one"),
)


def build_parser() -> Parser:
    """The parser of ``clean``."""
    parser = Parser("clean", "Empty the cache of `streamlint check`.", EXAMPLES)
    parser.add_argument("--cache-dir", metavar="FOLDER", help="where the cache lies (default: as configured)")
    return parser


def main(words: list[str]) -> int:
    """Delete what earlier runs found."""
    options = build_parser().read(words)
    asked = Path(options.cache_dir) if options.cache_dir else Resolver().of_folder(Path.cwd()).cache_dir
    folder = folder_of(asked)
    try:
        count = clean(folder)
    except OSError as error:
        raise ConfigError(f"cannot empty {folder}: {error.strerror or error}") from None
    print(line(f"removed {count} record{'s' * (count != 1)} from {folder}"), file=sys.stderr)
    return 0

"""``streamlint server``."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from typing import Any, BinaryIO

from streamlint import TYPE_CHECKING
from streamlint.commands.check_options import inline_settings
from streamlint.commands.parser import Parser
from streamlint.config.settings import Settings, apply
from streamlint.server import child
from streamlint.server.greeting import greet
from streamlint.server.jobs import Setup
from streamlint.support.errors import ConfigError
from streamlint.support.lazy import lazy

if TYPE_CHECKING:
    from streamlint.server import app
else:
    (app,) = lazy("streamlint.server", "app")

EXAMPLES = (
    ("streamlint server", "as editors start it: by stdin and stdout"),
    ("streamlint server --config 'preview = true'", "with one setting changed everywhere"),
    ("streamlint server --tcp 127.0.0.1:2087", "at a port, for one client"),
)


def build_parser() -> Parser:
    """The parser of ``server``."""
    parser = Parser("server", "Serve an editor by the Language Server Protocol: findings while you type, fixes, rules' pages.", EXAMPLES)
    way = parser.add_mutually_exclusive_group()
    way.add_argument("--stdio", action="store_true", help="talk by stdin and stdout (the default)")
    way.add_argument("--tcp", type=_address, metavar="HOST:PORT", help="listen there instead")
    parser.add_argument("--config", action="append", default=[], metavar="FILE|KEY=VALUE", help="a configuration file, or one setting")
    parser.add_argument("--isolated", action="store_true", help="read no configuration files")
    parser.add_argument(
        "--no-default-excludes", dest="default_excludes", action="store_false", help="lint tests, examples and vendored folders, too"
    )
    return parser


def main(words: list[str]) -> int:
    """Serve until the editor ends."""
    options = build_parser().read(words)
    if importlib.util.find_spec("pygls") is None:
        raise ConfigError("the server needs pygls; install it with: pip install 'streamlint[server]'")
    config, inline = _configuration(options)
    if not options.tcp and sys.stdin is None:
        raise ConfigError("standard input is closed")
    if config and options.isolated:
        raise ConfigError("--isolated ignores configuration files, --config names one")
    tables = (("--config", inline),) if inline else ()
    process = child.start()
    try:
        way = options.tcp or greet(sys.stdin.buffer, _answers())  # pygls takes long to import: the editor is answered before
        return app.serve(Setup((), "utf-16", config, options.isolated, options.default_excludes, tables), process, way)
    finally:
        process.kill()
        process.wait()


def _answers() -> BinaryIO:
    """The way to the editor. What anybody prints must not stand between answers."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return answers


def _configuration(options: argparse.Namespace) -> tuple[str | None, dict[str, Any]]:
    """The configuration file that is named, and single settings."""
    files: list[str] = []
    inline: dict[str, Any] = {}
    for text in options.config:
        if "=" in text and not os.path.exists(text):
            inline.update(inline_settings(text))
        else:
            files.append(os.path.abspath(text))
    if len(files) > 1:
        raise ConfigError("--config names more than one file")
    apply(Settings(), inline, Settings().root, "--config")
    return (files[0] if files else None), inline


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal():
        raise argparse.ArgumentTypeError(f"expected HOST:PORT, not '{text}'")
    return host.strip("[]") or "127.0.0.1", int(port)

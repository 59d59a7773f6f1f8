"""The options of ``streamlint verify``, and the templates and reports that they name."""

from __future__ import annotations

import argparse
import importlib.util
import re
from collections.abc import Sequence

from streamlint.config.targets import read_targets
from streamlint.support.errors import ConfigError
from streamlint.verify import templates
from streamlint.verify.cases import Template
from streamlint.verify.lab import MEMORY_BYTES

FORMATS = ("full", "json", "markdown", "html", "junit")
INSTALL = "install it with: pip install 'streamlint[cuda13]' (or 'streamlint[cuda12]' for a CUDA 12 driver)"
_UNITS = {"": 1 << 20, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}


class FailedError(Exception):
    """Nothing can run; the text says why, in one line."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of ``streamlint verify``."""
    parser.add_argument("--rule", action="append", default=[], metavar="CODE|NAME", help="verify this rule only; repeatable")
    parser.add_argument(
        "--output-format",
        action="append",
        default=[],
        metavar="FORMAT[:FILE]",
        help=f"{', '.join(FORMATS)}; with paths, those of check, and html; repeatable (default: full)",
    )
    parser.add_argument("--output-file", "-o", metavar="FILE", help="write the report there instead of to standard output")
    parser.add_argument("--evidence", metavar="DIR", help="keep the results in this folder instead of the user's own")
    parser.add_argument("--no-save", action="store_true", help="do not keep the results as evidence")
    parser.add_argument("--self-test", action="store_true", help="swap misuse and remedy: nothing may then be CONFIRMED")
    parser.add_argument("--strict", action="store_true", help="exit 1 on INCONCLUSIVE and UNSUPPORTED too")
    parser.add_argument("--device", type=int, default=0, metavar="N", help="which of the visible GPUs; default: 0")
    parser.add_argument(
        "--memory", type=size, default=MEMORY_BYTES, metavar="SIZE", help="device memory to use at most, 512M or 2G; default: 1G"
    )
    parser.add_argument("--timeout", type=float, default=30.0, metavar="SECONDS", help="deadline of one program; default: 30")
    parser.add_argument("--executor", choices=("dask",), help="have each worker of a cluster run the templates on its own GPU: trust it")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="the cluster's scheduler, such as tcp://host:8786")
    parser.add_argument("--quiet", "-q", action="store_true", help="no progress and no remarks")


def size(text: str) -> int:
    """``512M`` or ``2GiB`` in bytes; a number alone counts MiB."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmg]?)(?:i?b)?", text.strip().lower())
    if not found or not float(found[1]):
        raise argparse.ArgumentTypeError(f"'{text}' is no size: write 512M or 2G")
    return int(float(found[1]) * _UNITS[found[2]])


def choose(wanted: Sequence[str]) -> list[Template]:
    """The templates of these rules, by code or name; all, if none is named."""
    known = templates.load()
    by_word = {word.lower(): template for template in known.values() for word in (template.rule, template.name)}
    if unknown := [word for word in wanted if word.lower() not in by_word]:
        raise FailedError(f"no templates for {', '.join(unknown)}; there are some for {', '.join(known)}")
    codes = {by_word[word.lower()].rule for word in wanted}
    return [template for code, template in known.items() if not wanted or code in codes]


def targets_of(options: argparse.Namespace, known: Sequence[str]) -> list[tuple[str, str | None]]:
    """Formats, and the file that each is written to (``None``: standard output)."""
    try:
        found = read_targets(options.output_format or ["full"], known, options.output_file)
    except ConfigError as problem:
        raise FailedError(str(problem)) from None
    if any(name == "html" for name, _ in found) and importlib.util.find_spec("jinja2") is None:
        raise FailedError(f"the HTML page needs Jinja2, which is not installed; {INSTALL}")
    return found

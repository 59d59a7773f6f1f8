"""``streamlint check --explain-silence``."""

from __future__ import annotations

import argparse
import json
import sys

from streamlint.commands.reporting import CLEAN, write
from streamlint.config.settings import Resolver
from streamlint.silence import explain


def explain_silence(options: argparse.Namespace, resolver: Resolver, targets: list[tuple[str, str | None]]) -> int:
    """Answers why no finding stands at a line: in JSON where that is asked for, else as text."""
    answer = explain(options.paths, options.explain_silence, resolver)
    for format, file in targets:
        text = json.dumps(answer.as_json(), indent=2) + "\n" if format.startswith("json") else answer.as_text()
        if file is None:
            sys.stdout.write(text)
        else:
            write(file, text)
    return CLEAN

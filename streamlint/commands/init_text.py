"""What ``streamlint init`` writes: a table of settings with a reason for each, from what a project holds."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from streamlint.commands.schema import TELLS
from streamlint.config.settings import WORDS, Settings
from streamlint.discovery.survey import Survey
from streamlint.support.addresses import CONFIGURATION

# Keys that are shown as comments, each with its default; what a project has none of is left out.
RULES = ("extend-select", "ignore", "per-file-ignores", "preview")
FILES = ("include", "respect-gitignore")
REPORTED = ("output-format", "confidence", "baseline", "require-reasons")
ASSUMED = {"default-stream": "C++", "target-device": "Python", "hidden-sync": "", "evidence": ""}
EMPTY = {"extend-select": "[]", "ignore": "[]", "per-file-ignores": "{}"}
NO_DEFAULT = {"baseline": '"known.json"', "extend": '"../pyproject.toml"'}  # an example


def table(found: Survey, above: str | None) -> str:
    """The settings, without the head of a table: comments, and ``extend-exclude`` where something is proposed.

    ``above`` is the path of the configuration that has been in force so far, which the new one replaces.
    """
    parts = [*_found(found), *_excluded(found.proposals)]
    if above is not None:
        parts += ["", f"# {TELLS['extend']} So far {json.dumps(above)} held here.", f"# extend = {json.dumps(above)}"]
    for title, keys in (
        ("Which rules", RULES),
        ("Which files", FILES),
        ("What is reported", REPORTED),
        ("What is assumed", _assumed(found)),
    ):
        parts += ["", f"# --- {title} ---"]
        for key in keys:
            words = f" One of {', '.join(WORDS[key])}." if key in WORDS else ""
            more = " There is no default." if key in NO_DEFAULT else words
            parts += ["", f"# {TELLS[key]}{more}", f"# {key} = {_default(key, found)}"]
    return "\n".join(parts) + "\n"


def _found(found: Survey) -> Iterator[str]:
    files = ", ".join(f"{count} of {language}" for language, count in found.languages.items()) or "none"
    uses = ", ".join(f"{name} ({count})" for name, count in found.libraries.items()) or "none"
    yield f"# All keys: {CONFIGURATION}"
    yield f"# Files that can be linted: {files}. Files that use CUDA, by library: {uses}."
    if found.default_excludes:
        names = ", ".join(f"{name}/" for name in found.default_excludes)
        yield f"# Left out by default: {names}. `streamlint check --no-default-excludes` reads them."


def _excluded(proposals: Mapping[str, str]) -> Iterator[str]:
    yield ""
    yield f"# {TELLS['extend-exclude']}"
    if not proposals:
        yield "# extend-exclude = []"
        return
    yield "extend-exclude = ["
    for pattern, kind in proposals.items():
        yield f"    {json.dumps(pattern, ensure_ascii=False)},  # {kind}"
    yield "]"


def _assumed(found: Survey) -> list[str]:
    return [key for key, language in ASSUMED.items() if not language or found.languages.get(language)]


def _default(key: str, found: Survey) -> str:
    """A key's default as TOML; of ``include`` what was found, which is all that is read without it."""
    if key in NO_DEFAULT:
        return NO_DEFAULT[key]
    if key == "include":
        return json.dumps(found.suffixes, ensure_ascii=False)
    value = getattr(Settings(), key.replace("-", "_"), None)
    return EMPTY[key] if key in EMPTY else json.dumps(value)

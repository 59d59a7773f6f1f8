"""The extension for VS Code, held against what the server reads, and the editors' page. `test_vscode.py` builds and runs it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import streamlint
from streamlint.commands import server
from streamlint.config.settings import parse_toml
from streamlint.server import settings
from streamlint.server.app import SPOKEN
from streamlint.server.greeting import KINDS
from streamlint.support.reading import LANGUAGES

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "editors" / "vscode"
PACKAGE = json.loads((FOLDER / "package.json").read_text())
LOCK = json.loads((FOLDER / "package-lock.json").read_text())
EXTENSION = (FOLDER / "extension.js").read_text()
README = (FOLDER / "README.md").read_text()
PAGE = (ROOT / "docs" / "editors.md").read_text()
PROPERTIES = {name.removeprefix("streamlint."): value for name, value in PACKAGE["contributes"]["configuration"]["properties"].items()}
BUILD = "npm --prefix editors/vscode run vsix"


def told() -> dict[str, Any]:
    """The section as VS Code sends it where a user has set nothing: dots are levels."""
    section: dict[str, Any] = {}
    for name, value in PROPERTIES.items():
        first, _, rest = name.partition(".")
        section[first] = {rest: value["default"]} if rest else value["default"]
    return section


def test_settings_are_those_that_are_read():
    own = set(re.findall(r'settings\.get\("(\w+)"', EXTENSION))
    assert own == {"enable", "path", "args"}
    assert set(PROPERTIES) == {*settings.KEYS, *own, "trace.server"}  # the last one is the client library's
    assert set(re.findall(r'"streamlint\.(\w+)"', re.search(r"STARTS = (\[.*?\])", EXTENSION)[1])) == own
    assert set(told()) == {*settings.KEYS, *settings.CLIENT_ONLY}
    assert settings.read(told()) == settings.EditorSettings()
    assert PROPERTIES["delay"]["maximum"] == settings.LONGEST_DELAY
    assert settings.read({"streamlint": {"delay": "soon"}}).faults == ["setting streamlint.delay: 'soon' is no value for it"]
    assert re.findall(r"^\| `streamlint\.([\w.]+)` \|", README, re.MULTILINE) == list(PROPERTIES)
    assert all(f"`{name}`" in PAGE for name in PROPERTIES)


def test_languages_commands_and_version_agree():
    assert {event.removeprefix("onLanguage:") for event in PACKAGE["activationEvents"]} == set(SPOKEN)
    (listed,) = re.findall(r"LANGUAGES = (\[.*?\])", EXTENSION)
    assert set(json.loads(listed)) == set(SPOKEN)
    (cython,) = PACKAGE["contributes"]["languages"]  # the one that VS Code does not know by itself
    assert cython["extensions"] == [suffix for suffix, language in LANGUAGES.items() if language == cython["id"]]
    assert PACKAGE["version"] == LOCK["version"] == LOCK["packages"][""]["version"] == streamlint.__version__
    commands = PACKAGE["contributes"]["commands"]
    assert [each["command"] for each in commands] == re.findall(r'registerCommand\("(.*?)"', EXTENSION)
    assert all(f"*{each['title']}*" in text.replace("streamlint: ", "") for each in commands for text in (README, PAGE))
    assert f'kind: "{KINDS[1]}"' in EXTENSION


def test_what_is_packed_is_there():
    assert (FOLDER / "LICENSE").read_text() == (ROOT / "LICENSE").read_text()
    made = {name for name in PACKAGE["files"] if name.startswith("dist/")}
    assert made == {"dist/extension.js", "dist/NOTICES.txt"}
    assert PACKAGE["main"].removeprefix("./") in made
    assert all((FOLDER / name).is_file() for name in PACKAGE["files"] if name not in made)


def test_what_is_installed_is_pinned():
    """The lock file has the hash of each package, and names no index: that is the machine's affair."""
    asked = PACKAGE["dependencies"] | PACKAGE["devDependencies"]
    assert all(LOCK["packages"][f"node_modules/{name}"]["version"] == version for name, version in asked.items())
    packages = [value for name, value in LOCK["packages"].items() if name]
    assert all("integrity" in each and "resolved" not in each for each in packages)
    assert (FOLDER / ".npmrc").read_text().splitlines() == ["omit-lockfile-registry-resolved=true", "ignore-scripts=true"]


def test_the_build_is_told_in_each_place():
    assert PACKAGE["scripts"]["vsix"].startswith("npm ci && ")
    vsix = f"code --install-extension editors/vscode/streamlint-{streamlint.__version__}.vsix"
    assert all(f"$ {command}\n" in text for text in (README, PAGE) for command in (BUILD, vsix))
    assert BUILD in (ROOT / "CONTRIBUTING.md").read_text()


def test_what_the_page_shows_is_well_formed():
    blocks = re.findall(r"^```(\w+)\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert [language for language, _ in blocks] == ["console", "console", "json", "lua", "toml"]
    for language, body in blocks:
        if language == "json":
            assert set(json.loads(body)) <= {f"streamlint.{name}" for name in PROPERTIES} | {"[python]"}
        if language == "toml":
            assert parse_toml(body.encode(), "page")["language-server"]["streamlint"]["args"] == ["server"]
    assert all(option in PAGE for option in ("--config", "--isolated", "--no-default-excludes", "--tcp HOST:PORT"))
    assert server.build_parser().read(["--isolated", "--tcp", "[::1]:9"]).tcp == ("::1", 9)

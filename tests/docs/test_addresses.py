"""The project's address and authors: what `pyproject.toml` says is what everything else leads to."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml

from streamlint.support import addresses

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib  # type: ignore[import-not-found, no-redef]

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
URLS = PROJECT["urls"]
EXTENSION = json.loads((ROOT / "editors" / "vscode" / "package.json").read_text())


def told(name: str) -> dict:
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def test_the_program_leads_to_what_the_index_shows():
    assert URLS["Documentation"] == addresses.SITE
    assert URLS["Changelog"] == f"{addresses.SITE}changelog/"
    assert URLS["Issues"] == f"{URLS['Repository']}/issues"


def test_the_site_is_built_for_its_address():
    assert told("mkdocs.yml")["site_url"] == URLS["Documentation"]


def test_examples_for_ci_use_the_repository():
    (hook,) = told("docs/ci/pre-commit.yml")["repos"]
    assert hook["repo"] == URLS["Repository"]
    text = (ROOT / "docs" / "ci" / "github.yml").read_text(encoding="utf-8")
    assert f"uses: {URLS['Repository'].removeprefix('https://github.com/')}@v" in text


def test_the_authors_are_the_same():
    (author,) = PROJECT["authors"]
    assert told("action.yml")["author"] == author["name"]
    assert EXTENSION["publisher"] == author["name"].split()[0]


def test_the_extension_leads_to_the_project():
    assert EXTENSION["repository"]["url"] == URLS["Repository"]
    assert EXTENSION["bugs"]["url"] == URLS["Issues"]
    assert EXTENSION["homepage"] == f"{addresses.SITE}editors/"


@pytest.mark.parametrize("folder", ["streamlint", "streamlint_docs"])
def test_no_other_module_has_an_address(folder):
    written = re.compile(r"streamlint\.readthedocs\.io|github\.com/streamlint")
    found = [path for path in (ROOT / folder).rglob("*.py") if written.search(path.read_text(encoding="utf-8"))]
    assert found == ([ROOT / "streamlint" / "support" / "addresses.py"] if folder == "streamlint" else [])

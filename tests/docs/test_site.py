"""The site's pages: what they show is what the program says, and what leads somewhere leads there. `.ci/run` builds the site itself."""

from __future__ import annotations

import ast
import json
import re
import shlex
from pathlib import Path

import pytest
import yaml

from streamlint import cli
from streamlint.checks.base import registry
from streamlint.checks.rules import all_rules
from streamlint.commands import check_options, evidence, init, litmus, rule, verify
from streamlint.commands import rules as rules_command
from streamlint.config.settings import KEYS, WORDS, Settings, load
from streamlint.findings import measured
from streamlint.report.entries import page
from streamlint.verify import templates
from streamlint_docs import DOCS, ROOT, authored, commands, links, programs, rules, settings
from streamlint_docs import __main__ as site

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib  # type: ignore[import-not-found, no-redef]

WRITTEN = sorted([*DOCS.glob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])
BLOCK = re.compile(r"^```(?P<language>\w+)[^\n]*\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
PARSERS = {
    "check": check_options.build_parser,
    "evidence": evidence.build_parser,
    "init": init.build_parser,
    "litmus": litmus.build_parser,
    "rule": rule.build_parser,
    "rules": rules_command.build_parser,
    "verify": verify.build_parser,
}


def blocks(path: Path, *languages: str) -> list[str]:
    return [block["body"] for block in BLOCK.finditer(path.read_text(encoding="utf-8")) if block["language"] in languages]


def ids(paths: list[Path]) -> list[str]:
    return [path.name for path in paths]


@pytest.fixture(scope="module")
def sources() -> dict[str, str]:
    return site.sources()


# Examples that people wrote ---------------------------------------------------------------------------------------------------


ASKED = [(path.name, source, codes) for path in WRITTEN for source, codes in authored.asked(path.read_text(encoding="utf-8"))]
NAMES = [f"{page}-{source.path}-{number}" for number, (page, source, _) in enumerate(ASKED)]


@pytest.mark.parametrize(("page", "source", "codes"), ASKED, ids=NAMES)
def test_an_example_shows_what_it_promises(page, source, codes):
    report = programs.lint(source, codes)
    assert not report.problems
    assert report.relevant == 1
    assert {finding.code for finding in report.findings} == codes


def test_a_command_line_selects_what_is_not_on():
    off = next(code for code, check in registry().items() if check.default != "on")
    assert programs.selected("SL005", off) == f" --extend-select {off}"
    assert programs.selected("SL005") == ""


def test_the_first_page_has_its_stories():
    told = [codes for page, _, codes in ASKED if page == "index.md" and codes]
    assert set().union(*told) == {"SL001", "SL002", "SL005", "SL010", "SL012"}


@pytest.mark.parametrize("path", WRITTEN, ids=ids(WRITTEN))
def test_blocks_can_be_read(path):
    for body in blocks(path, "python"):
        ast.parse(body)
    for body in blocks(path, "toml"):
        tomllib.loads(body)
    for body in blocks(path, "yaml"):
        yaml.safe_load(body)
    for body in blocks(path, "json"):
        json.loads(body)


def command_lines(path: Path) -> list[str]:
    """What stands in blocks for a terminal, without comments, redirections and what is piped into it."""
    lines = "\n".join(blocks(path, "console")).replace("\\\n", " ").splitlines()
    named = [line.removeprefix("$ ").partition("  #")[0] for line in lines if line.startswith(("$ ", "streamlint "))]
    ours = [line[found.end() - 11 :] for line in named if (found := re.search(r"(?:^|[ /])streamlint ", line))]
    ours = [re.split(r"\s[>|] ", line)[0].strip() for line in ours]
    return [line for line in ours if line.split()[1] in cli.COMMANDS]


@pytest.mark.parametrize("path", WRITTEN, ids=ids(WRITTEN))
def test_command_lines_can_be_read(path):
    for line in command_lines(path):
        _, name, *words = shlex.split(line)
        if name in PARSERS:
            PARSERS[name]().read(words)


def test_command_lines_are_found():
    assert sum(len(command_lines(path)) for path in WRITTEN) > 25


@pytest.mark.parametrize("path", WRITTEN, ids=ids(WRITTEN))
def test_settings_in_blocks_are_settings(path, tmp_path):
    for body in blocks(path, "toml"):
        if "streamlint" in tomllib.loads(body).get("tool", {}):
            (tmp_path / "pyproject.toml").write_text(body, encoding="utf-8")
            load(tmp_path / "pyproject.toml")


# Pages of rules ---------------------------------------------------------------------------------------------------------------


def test_the_address_of_a_finding_is_a_page_of_the_site(sources):
    address = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["site_url"]
    for code, check in all_rules().items():
        name = page(check.name).removeprefix(address).rstrip("/")
        assert f"{name}.md" in sources
        assert f"url=../{check.name}/" in sources[f"rules/{code}/index.html"]


@pytest.mark.parametrize("check", registry().values(), ids=registry())
def test_a_page_shows_what_the_linter_says(check):
    text = rules.page(check)
    shown = re.search(r"^```text\n\$ streamlint check (example\.\w+)[^\n]*\n(?P<output>.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert shown
    assert f"{check.name} [{check.code}]" in shown["output"]
    assert set(re.findall(r"\[(SL\d{3})\]", shown["output"])) == {check.code}
    for record in programs.shipped(check.code):
        assert f"| {record['case']} | {record['api']} | {record['verdict']} |" in text
        assert f"{record['platform']}, {record['date']}" in text
    assert "``" not in re.sub(r"^ *```.*?^ *```$", "", text, flags=re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("check", registry().values(), ids=registry())
def test_a_fix_on_a_page_is_told(check):
    text = rules.page(check)
    if "```diff" in text:
        assert check.fixes
    assert f"fix: {', '.join(check.fixes)}<" in text or not check.fixes


def test_the_table_has_each_rule_once():
    rows = [line for line in rules.table().splitlines() if line.startswith("| SL")]
    assert [row.split(" | ")[0] for row in rows] == [f"| {code}" for code in registry()]
    assert {len(row.split(" | ")) for row in rows} == {8}
    assert all(row.split(" | ")[4] for row in rows), "each rule is found in some language"


def test_judgments_are_told():
    code = next(iter(measured.judged()))
    assert f"## In released packages\n\n{measured.judged_text(code)}" in rules.page(registry()[code])
    silent = next(code for code in registry() if code not in measured.judged())
    assert "## In released packages" not in rules.page(registry()[silent])


LANGUAGES = {"python": "Python", "cython": "Cython", "cuda": "C++"}
HELPERS = re.compile(r"from streamlint\.fix\.(?!code\b)(\w+)")


@pytest.mark.parametrize("check", registry().values(), ids=registry())
def test_languages_are_those_in_which_a_rule_is_found(check):
    """In its own documents and templates."""
    template = templates.load().get(check.code)
    cases = template.cases if template else ()
    found = {{".cu": "cuda"}.get(case.suffix, "python") for case in cases if check.code in dict(case.marked("misuse"))}
    for path in (ROOT / "tests" / "rules").glob(f"{check.code.lower()}*.md"):
        for fence in BLOCK.finditer(path.read_text(encoding="utf-8")):
            if re.search(rf"error: \[[^\]]*{check.code}", fence["body"]):
                found.add(fence["language"])
    assert check.languages == tuple(name for word, name in LANGUAGES.items() if word in found)


@pytest.mark.parametrize("check", registry().values(), ids=registry())
def test_fixes_are_those_that_a_rule_has(check):
    """By what its module of fixes, and the ones which that shares with others, say of them."""
    folder = ROOT / "streamlint" / "fix"
    text = "".join(path.read_text(encoding="utf-8") for path in folder.glob(f"{check.code.lower()}_*.py"))
    text += "".join((folder / f"{name}.py").read_text(encoding="utf-8") for name in HELPERS.findall(text))
    assert check.fixes == tuple(word.lower() for word in ("SAFE", "UNSAFE") if re.search(rf"\b{word}\b", text))


def test_the_readme_leads_to_what_there_is():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    targets = re.findall(r"\]\(([^)#:]+)\)", text)
    assert len(targets) > 10
    assert not [target for target in targets if not (ROOT / target).exists()]
    assert f": {len(registry())} rules for" in text
    assert "example.com" not in text


# Configuration and command line -----------------------------------------------------------------------------------------------


def test_each_setting_has_its_place():
    assert sorted(key for keys in settings.GROUPS.values() for key in keys) == sorted(KEYS)
    assert set(settings.EXAMPLES) == set(KEYS)


@pytest.mark.parametrize("key", KEYS)
def test_an_example_of_a_setting_is_one(key, tmp_path):
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "streamlint.toml").write_text("preview = true\n", encoding="utf-8")
    path = tmp_path / "here" / "pyproject.toml"
    path.parent.mkdir()
    path.write_text(f"[tool.streamlint]\n{settings.EXAMPLES[key]}\n", encoding="utf-8")
    assert load(path) != Settings(root=path.parent, source=path)
    assert list(tomllib.loads(settings.EXAMPLES[key])) == [key]


@pytest.mark.parametrize("key", settings.MEANS)
def test_each_word_of_a_setting_is_explained(key):
    assert list(settings.MEANS[key]) == list(WORDS[key])


def test_defaults_are_those_of_the_program():
    assert settings.default("default-stream") == '"auto"'
    assert settings.default("respect-gitignore") == "true"


def test_help_is_shown(sources):
    assert all(f"## streamlint {name}\n" in sources["commands.md"] for name in cli.COMMANDS)
    assert commands.told("check") in sources["commands.md"]
    assert "--explain-silence FILE:LINE" in sources["commands.md"]


# The whole --------------------------------------------------------------------------------------------------------------------


def navigation(rows: list[dict[str, object]]) -> list[str]:
    found = []
    for row in rows:
        for target in row.values():
            found += navigation(target) if isinstance(target, list) else [target]
    return found


def test_each_page_is_in_the_navigation(sources):
    named = navigation(site.configuration(ROOT / "build")["nav"])
    pages = {name for name in sources if name.endswith(".md") and not name.startswith("rules/")}
    assert sorted(named) == sorted({*pages, "rules/index.md"}), "each page of docs/ has its place in the nav of mkdocs.yml"


def test_dead_links_are_found(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "index.html").write_text(
        '<h1 id="here">x</h1><a href="../">up</a><a href="#here">h</a><a href="https://e.org/b/">o</a>'
    )
    within = '<a href="a/#here">1</a><a href="a/#gone">2</a><a href="b/">3</a><img src="x.png"><a href="/a/">5</a>'
    (tmp_path / "index.html").write_text(
        within + '<a href="https://e.org/a/">4</a>' + '<a href="https://elsewhere.org/">6</a><a href="mailto:a@e.org">7</a>'
    )
    assert links.dead(tmp_path, "https://e.org/") == [
        "a/index.html: https://e.org/b/",
        "index.html: a/#gone",
        "index.html: b/",
        "index.html: x.png",
    ]
    assert list(links.outside(tmp_path, "https://e.org/")) == ["https://elsewhere.org/"]


def test_links_out_of_the_folder_lead_to_pages(tmp_path):
    text = authored.prepared("[c](../CONTRIBUTING.md#a-rule) [m](models.md) [s](schemas/findings.json)\n", DOCS / "ci.md")
    assert text == "[c](contributing.md#a-rule) [m](models.md) [s](schemas/findings.json)\n"
    assert authored.prepared("[m](docs/models.md)\n", ROOT / "CONTRIBUTING.md") == "[m](models.md)\n"

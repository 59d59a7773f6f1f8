"""The pages that people write: those of ``docs/``, with what the linter says put behind the blocks that ask for it."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from streamlint.commands.reporting import summary_line
from streamlint.config.options import Source
from streamlint_docs import DOCS, ROOT
from streamlint_docs.programs import SUFFIXES, lint, output, selected

# `<!-- lint: NAME CODE… -->` above a block of code: what `streamlint check NAME` prints of it is shown behind it: these codes.
ASKED = re.compile(
    r"^<!-- lint: (?P<name>\S+)(?P<codes>(?: SL\d{3})*) -->\n```(?P<language>python|cuda)(?P<more>[^\n]*)\n(?P<body>.*?)^```$\n",
    re.MULTILINE | re.DOTALL,
)
FILE = re.compile(r"^<!-- file: (?P<path>\S+) -->$", re.MULTILINE)  # the file's text is shown
INPUTS = re.compile(r"^<!-- inputs -->$", re.MULTILINE)  # rows of a table: the inputs of the GitHub action
LINK = re.compile(r"(?P<before>\]\()(?P<target>[^)#:\s]+)(?P<rest>(?:#[^)\s]*)?\))")
FENCES = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
ABOVE = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}  # pages of the root that the site shows, too
COPIED = ("images", "schemas", "assets", "ci")


def pages() -> dict[str, str]:
    """The pages by their path below the site's sources."""
    found = {str(path.relative_to(DOCS)): path for path in (*sorted(DOCS.glob("*.md")), *sorted(DOCS.glob("reports/*.md")))}
    found |= {name: ROOT / source for source, name in ABOVE.items()}
    return {name: prepared(path.read_text(encoding="utf-8"), path) for name, path in found.items()}


def prepared(text: str, path: Path) -> str:
    """A page with outputs, its links turned to the places that its targets have on the site, and C++ named as highlighters know it."""
    shown = INPUTS.sub(lambda _: _inputs(), FILE.sub(lambda found: _file(path.parent / found["path"]), ASKED.sub(_with_output, text)))
    parts = FENCES.split(shown)
    fences = [re.sub(r"\A```cuda\b", "```cpp", fence) for fence in FENCES.findall(shown)]
    linked = [LINK.sub(lambda link: _linked(link, path), part) for part in parts]
    return "".join(part + fence for part, fence in zip(linked, [*fences, ""], strict=True))


def asked(text: str) -> list[tuple[Source, set[str]]]:
    """The programs of a page whose findings are shown, and the codes that it promises."""
    return [(_source(found), set(found["codes"].split())) for found in ASKED.finditer(text)]


def _source(found: re.Match[str]) -> Source:
    assert found["name"].endswith(SUFFIXES[found["language"]])
    return Source(found["name"], found["body"], found["language"])


def _with_output(found: re.Match[str]) -> str:
    source = _source(found)
    report = lint(source, found["codes"].split())
    told = output(report) if report.findings else f"{summary_line(report)}\n"
    block = f'```{found["language"]} title="{source.path}" linenums="1"\n{found["body"]}```\n'
    return f"{block}\n```text\n$ streamlint check {source.path}{selected(*found['codes'].split())}\n{told}```\n"


def _file(path: Path) -> str:
    kind = "yaml" if path.suffix == ".yml" else "docker"
    return f"```{kind}\n{path.read_text(encoding='utf-8')}```"


def _inputs() -> str:
    inputs = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))["inputs"]
    rows = ((name, f"`{value['default']}`" if value["default"] else "", value["description"]) for name, value in inputs.items())
    return "\n".join(f"| `{name}` | {default} | {told} |" for name, default, told in rows)


def _linked(link: re.Match[str], page: Path) -> str:
    """A link to a file of the repository that the site does not have becomes the file's name."""
    target = (page.parent / link["target"]).resolve()
    if target.is_relative_to(DOCS):
        name = str(target.relative_to(DOCS))
    elif target.is_relative_to(ROOT) and str(target.relative_to(ROOT)) in ABOVE:
        name = ABOVE[str(target.relative_to(ROOT))]
    else:
        return link[0]
    return f"{link['before']}{name}{link['rest']}"

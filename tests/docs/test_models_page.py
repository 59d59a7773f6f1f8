"""The reference of model rows is made from the table that validates them, and so is their JSON Schema."""

from __future__ import annotations

import re
from typing import Any

import jsonschema
import pytest
import yaml

from streamlint.commands import schema
from streamlint.config.settings import Settings
from streamlint.models import load_file
from streamlint.models.effects import EFFECTS
from streamlint.models.keys import HEAD, ROWS, VALUES, Key
from streamlint.models.vocabulary import DEFAULTS, PLACES
from streamlint.support.errors import ConfigError
from streamlint.support.shipped import model_files
from streamlint_docs import DOCS, ROOT, models
from streamlint_docs import __main__ as site

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib  # type: ignore[import-not-found, no-redef]

PAGE = models.page()
# The sections of the page by their headings.
SECTIONS = {part.partition("\n")[0]: part.partition("\n")[2] for part in re.split(r"^#{2,3} ", PAGE, flags=re.MULTILINE)}
CHECKER = jsonschema.Draft7Validator(schema.configuration())


def rows_of(section: str) -> list[str]:
    return re.findall(r"^\| `(\w+)`", section, re.MULTILINE)


# The page ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("effect", EFFECTS.values(), ids=EFFECTS)
def test_an_effect_has_a_section_with_its_keys_and_a_row(effect: Any) -> None:
    section = SECTIONS[effect.name]
    assert effect.meaning in section
    assert rows_of(section) == [key.name for key in effect.keys]
    for key in effect.keys:
        assert key.meaning.replace("|", "\\|") in section
        assert all(f"`{word}`" in section for word in key.words)
    (block,) = re.findall(r"```toml\n(.*?)```", section, re.DOTALL)
    data = tomllib.loads(block)
    (row,) = data.get("call") or data["attribute"]
    assert row["effect"] == effect.name


@pytest.mark.parametrize("kind", ROWS)
def test_a_kind_of_rows_has_a_section_with_its_keys(kind: str) -> None:
    section = SECTIONS[models.TITLES[kind]]
    keys: tuple[Key, ...] = ROWS[kind][1]
    assert [name for name in rows_of(section) if name in {key.name for key in keys}] == [key.name for key in keys]
    assert section.count("(required)") == sum(key.needed for key in keys)


def test_heads_places_and_constants_are_listed() -> None:
    assert rows_of(SECTIONS["The table"]) == [key.name for key in HEAD]
    assert all(f"| `{place}` | {meaning} |" in SECTIONS["Places"] for place, meaning in PLACES.items())
    assert all(f"| `={word}` | {meaning} |" in SECTIONS["Places"] for word, meaning in DEFAULTS.items())
    assert all(f"| `{word}` | {meaning} |" in SECTIONS["Constants"] for word, meaning in VALUES.items())


def test_headings_are_anchors_of_their_own() -> None:
    """Links within the page lead to headings, of which no two are alike."""
    headings = [heading.lower().replace(" ", "-") for heading in re.findall(r"^#{1,3} (.+)$", PAGE, re.MULTILINE)]
    assert len(set(headings)) == len(headings)
    assert {target.replace(",", "") for target in re.findall(r"\]\(#([^)]+)\)", PAGE)} <= set(headings)


def test_the_page_is_reached() -> None:
    assert site.sources()["models-reference.md"] == PAGE
    nav = yaml.safe_dump(yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"])
    assert "Model reference: models-reference.md" in nav
    for name in ("models.md", "adding-a-model.md"):
        assert "](models-reference.md)" in (DOCS / name).read_text(encoding="utf-8")


# The schema -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", model_files(), ids=lambda path: path.stem)
def test_shipped_rows_fit_the_schema(path: Any) -> None:
    assert [error.message for error in CHECKER.iter_errors({"models": [load_file(path)]})] == []


ROW = {"names": "acme.upload", "effect": "transfer", "of": "0:array", "to": "device", "asynchronous": True, "type": "torch.Tensor"}
WRONG = [
    {"library": "tourch"},
    {"language": "c"},
    {"version": 2},
    {"calls": []},
    {"call": [{**ROW, "effect": "transfr"}]},
    {"call": [{**ROW, "hostmemory": "pinned"}]},
    {"call": [{**ROW, "asynchronous": "yes"}]},
    {"call": [{**ROW, "of": "array"}]},
    {"call": [{**ROW, "stream": "0=nul"}]},
    {"call": [{**ROW, "host_memory": "pined"}]},
    {"call": [{"names": "acme.f"}]},
    {"call": [{"effect": "touch"}]},
    {"call": [{"names": "acme.f", "effect": "namespace"}]},
    {"call": [{"names": "acme.f", "effect": "trim", "of": "0"}]},
    {"attribute": [{"names": "acme.T.f", "effect": "trim", "of": "0"}]},
    {"type": [{"names": "acme.T"}]},
    {"type": [{"names": "acme.T", "kind": "streams"}]},
    {"constant": [{"names": "acme.C", "value": "h2h2"}]},
    {"step": [{"names": "acme.S"}]},
]


@pytest.mark.parametrize("table", WRONG, ids=range(len(WRONG)))
def test_the_schema_refuses_what_the_configuration_refuses(table: dict[str, Any]) -> None:
    whole = {"library": "torch", **table}
    assert list(CHECKER.iter_errors({"models": [whole]}))
    with pytest.raises(ConfigError):
        Settings.of(models=[whole])


def test_the_schema_takes_what_the_configuration_takes() -> None:
    rows = [ROW, {**ROW, "asynchronous": ":wait=false", "of": 0}, {**ROW, "asynchronous": ["1", "2=false"], "stream": "current"}]
    whole = {"library": "torch", "call": [*rows, {"names": ["acme.f", "acme.g*"], "effect": "unpack", "of": "0", "from": 2}]}
    assert not list(CHECKER.iter_errors({"models": [whole]}))
    assert Settings.of(models=[whole]).models

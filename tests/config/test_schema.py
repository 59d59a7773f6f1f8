"""The JSON Schema of the configuration: samples that the schema store would be given, held against it and against the linter."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from streamlint.commands import schema
from streamlint.config.settings import FLAGS, KEYS, WORDS, Settings, load
from streamlint.support.errors import ConfigError

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib  # type: ignore[import-not-found, no-redef]

ROOT = Path(__file__).parents[2]
SAMPLES = Path(__file__).with_name("schemastore")
VALID = sorted((SAMPLES / "test" / "streamlint").glob("*.toml"))
INVALID = sorted((SAMPLES / "negative_test" / "streamlint").glob("*.toml"))


def stems(paths):
    return [path.stem for path in paths]


@pytest.fixture(scope="module")
def validator():
    return jsonschema.Draft7Validator(json.loads((ROOT / "docs" / "schemas" / "configuration.json").read_text(encoding="utf-8")))


def read(path):
    return tomllib.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", VALID, ids=stems(VALID))
def test_what_the_linter_takes_fits(validator, path):
    assert load(path).source == path
    assert [error.message for error in validator.iter_errors(read(path))] == []


@pytest.mark.parametrize("path", INVALID, ids=stems(INVALID))
def test_what_the_linter_refuses_does_not_fit(validator, path):
    with pytest.raises(ConfigError):
        load(path)
    assert len(list(validator.iter_errors(read(path)))) == 1


def test_the_samples_have_each_key():
    """``select`` and the two that name files of somebody's own stand in the documentation."""
    assert set(KEYS) - {key for path in VALID for key in read(path)} == {"select", "extend-ignore", "extend"}
    assert len(INVALID) == 7


@pytest.mark.parametrize("name", schema.SCHEMAS)
def test_each_schema_names_its_draft_and_itself(name):
    made = schema.SCHEMAS[name]()
    jsonschema.Draft7Validator.check_schema(made)
    assert made["$schema"] == "http://json-schema.org/draft-07/schema#"
    home = schema.STORE if name == "configuration" else f"https://streamlint.readthedocs.io/schemas/{name}.json"
    assert made["$id"] == home


def test_defaults_are_those_of_the_program():
    shown = {key: value["default"] for key, value in schema.configuration()["properties"].items() if "default" in value}
    assert shown == {key: getattr(Settings(), key.replace("-", "_")) for key in (*FLAGS, *WORDS)}


def test_an_editor_asks_no_other_place():
    """Each reference leads into the schema itself: the schema store's cannot lead elsewhere."""
    text = (ROOT / "docs" / "schemas" / "configuration.json").read_text(encoding="utf-8")
    assert text.count('"$ref": "#/definitions/') == text.count('"$ref"') > 0

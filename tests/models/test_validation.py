"""The user's rows are held against the known libraries, types, modules and places: each error names its line and the right word."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamlint.config.settings import Settings, load
from streamlint.models import builtin, is_covered, load_file
from streamlint.models.effects import EFFECTS, GROUPS
from streamlint.models.keys import KINDS, ROWS, VALUES, Key
from streamlint.models.traits import MEANINGS, TRAITS
from streamlint.models.user_rows import check, libraries, shipped_types
from streamlint.models.vocabulary import ModelError, parse_field
from streamlint.support.errors import ConfigError
from streamlint.support.shipped import model_files

HEAD = '[[models]]\nlibrary = "torch"\n\n'
UPLOAD = '[[models.call]]\nnames = "acme.upload"\neffect = "transfer"\nof = "0"\nto = "device"\n'
QUEUE = '[[models.type]]\nnames = "acme.Queue"\nkind = "stream"\n'
GET = '[[models.call]]\nnames = "acme.get"\n'


def refused(folder: Path, text: str) -> str:
    """The error of a configuration, from its line on."""
    path = folder / "streamlint.toml"
    path.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert str(caught.value).startswith(f"{path}:")
    return str(caught.value).removeprefix(f"{path}:")


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ('[[models]]\nlibrary = "tourch"\n', 2, "models[0]: library 'tourch' is unknown; did you mean 'torch'?"),
        ('[[models]]\nlibrary = ""\n', 2, "models[0]: library '' is unknown; known: cffi, "),
        ('[[models]]\nlanguage = "pyton"\n', 2, "models[0]: language: 'pyton' is unknown; did you mean 'python'?"),
        (f'{HEAD}{QUEUE}base = "torch.cuda.Strem"\n', 7, "base: type 'torch.cuda.Strem' is unknown; did you mean 'torch.cuda.Stream'?"),
        (f'{HEAD}{QUEUE}base = "zzz.Nowhere"\n', 7, "type 'zzz.Nowhere' is unknown; add a row [[tool.streamlint.models.type]] for it"),
        (f'{HEAD}{QUEUE}base = "torch.Tensor"\n', 6, "kind 'stream' does not go with base 'torch.Tensor', which is of kind 'buffer'"),
        (f'{HEAD}{UPLOAD}type = "torch.Tensr"\n', 9, "type: type 'torch.Tensr' is unknown; did you mean 'torch.Tensor'?"),
        (f'{HEAD}{UPLOAD}asynchronous = "yes"\n', 9, "acme.upload: asynchronous: 'yes' must be true or false; did you mean true?"),
        (f'{HEAD}{UPLOAD}asynchronous = "non_blocking"\n', 9, "'non_blocking' is no selector; did you mean ':non_blocking'?"),
        (f"{HEAD}{UPLOAD}asynchronous = 1.5\n", 9, "1.5 is no selector; it accepts true, false, the place of a flag in the call"),
        (f'{HEAD}{UPLOAD}raw = "maybe"\n', 9, "raw: 'maybe' must be true or false; it accepts true or false"),
        (f'{HEAD}{UPLOAD}stream = "1:stream=nul"\n', 9, "has an unknown default 'nul'; did you mean 'null'?"),
        (f'{HEAD}{UPLOAD}host_memory = "pined"\n', 9, "host_memory: 'pined' is unknown; did you mean 'pinned'?"),
        (f"{HEAD}{UPLOAD}type = 5\n", 9, "type: 5 is no text; it accepts the name of a type that has a row"),
        (f'{HEAD}{UPLOAD}hostmemory = "pinned"\n', 9, "effect 'transfer' has no 'hostmemory'; did you mean 'host_memory'?"),
        (f"{HEAD}{GET}", 4, "acme.get: 'effect' is missing"),
        (f'{HEAD}{GET}effect = "namespace"\n', 4, "effect 'namespace' needs 'name': the dotted name of a module or type that has rows"),
        (
            f'{HEAD}{GET}effect = "namespace"\nname = "torch.cudaa"\n',
            7,
            "name: module 'torch.cudaa' is unknown; did you mean 'torch.cuda'?",
        ),
        (f'{HEAD}{GET}effect = "set_stream"\nstream = "0"\nlibrary = "cuppy"\n', 8, "library 'cuppy' is unknown; did you mean 'cupy'?"),
        (f'{HEAD}{GET}effect = "trim"\nof = "0"\n', 7, "effect 'trim' has no 'of'; it takes no keys"),
        (HEAD + UPLOAD.replace("acme.upload", "acme.upload()"), 5, "'acme.upload()' is no name; did you mean 'acme.upload'?"),
        (HEAD + UPLOAD.replace("acme.upload", "acme upload"), 5, "'acme upload' is no name; a name is written as in the code"),
        (UPLOAD.replace("models", "models"), 1, "models: expected a list of tables"),
        (f"[[models]]\n{UPLOAD}", 2, "acme.upload: effect 'transfer' needs the key 'library' of its table"),
        (
            f'[[models]]\nlanguage = "cuda"\n{UPLOAD}'.replace("acme.upload", "acme.upload"),
            4,
            "'acme.upload' is no name; did you mean 'acme::upload'?",
        ),
        (
            f'{HEAD}language = "python"\n{UPLOAD}'.replace("acme.upload", "acme::upload"),
            6,
            "'acme::upload' is no name; a name of C++ needs language = \"cuda\"",
        ),
    ],
)
def test_an_error_names_its_line_and_the_right_word(tmp_path: Path, text: str, line: int, message: str) -> None:
    told = refused(tmp_path, text)
    assert told.startswith(f"{line}: ")
    assert message in told


@pytest.mark.parametrize(
    "text",
    [
        *(f'[[models]]\nlibrary = "{name}"\n' for name in libraries()),
        f'{HEAD}{QUEUE}base = "torch.cuda.Stream"\n',
        f'{HEAD}{UPLOAD}type = "torch.Tensor"\nasynchronous = "1:non_blocking=false"\nstream = "2:stream=current"\n',
        f'{HEAD}{UPLOAD}asynchronous = ["1", ":wait=true"]\n',
        f'{HEAD}{UPLOAD}type = "acme.Frame"\n\n[[models.type]]\nnames = "acme.F*"\nkind = "buffer"\n',
        f'{HEAD}{GET}effect = "namespace"\nname = "torch.cuda"\n',
        f'{HEAD}{GET}effect = "namespace"\nname = "ctypes.py_object"\n',
        f'{HEAD}{GET}effect = "facade"\nmodule = "torch.cuda"\n',
        f'[[models]]\n{GET}effect = "touch"\n',  # no library's stream, no library
        f'[[models]]\nlanguage = "cuda"\n{UPLOAD}'.replace("acme.upload", "acme::upload"),
        f"[[models]]\n{UPLOAD}".replace("acme.upload", "acme::Table::operator[]"),
        f'[[models]]\nlanguage = "cuda"\n{UPLOAD}'.replace("acme.upload", "acmeUpload"),
    ],
)
def test_right_rows_are_taken(tmp_path: Path, text: str) -> None:
    path = tmp_path / "streamlint.toml"
    path.write_text(text)
    assert len(load(path).models) == 1


def test_types_of_an_extended_configuration_are_known(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text(HEAD + QUEUE)
    mine = tmp_path / "streamlint.toml"
    mine.write_text(f'extend = "base.toml"\n{HEAD}{QUEUE.replace("Queue", "Fast")}base = "acme.Queue"\n')
    assert len(load(mine).models) == 2
    mine.write_text(mine.read_text().replace('extend = "base.toml"', ""))
    with pytest.raises(ConfigError, match=r"type 'acme\.Queue' is unknown"):
        load(mine)


def test_types_of_another_language_are_not_known() -> None:
    row = {"names": "acme::Queue", "kind": "stream", "base": "torch.cuda.Stream"}
    with pytest.raises(ConfigError, match="unknown"):
        Settings.of(models=[{"language": "cuda", "type": [row]}])
    assert Settings.of(models=[{"type": [row]}]).models


# The table of keys itself ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", ["python", "cuda", "cython"])
def test_types_are_read_without_the_rest(language: str) -> None:
    models = builtin(language)
    kinds = shipped_types(language)
    assert all(kinds.get(name, row.kind) == row.kind for name, row in models.types.items())
    assert {
        name for name in models.types if name not in kinds and not any(is_covered(k.split("*"), name) for k in kinds if "*" in k)
    } == set()
    assert {name for name in kinds if "*" not in name} <= set(models.types)


def all_keys() -> list[Key]:
    return [*(key for _, keys in ROWS.values() for key in keys), *(key for effect in EFFECTS.values() for key in effect.keys)]


def test_every_key_is_described() -> None:
    for key in all_keys():
        assert key.kind in KINDS, key
        assert key.meaning.rstrip().endswith("."), key
        assert bool(key.words) == (key.kind in ("word", "words", "word or place") and key.name != "effect"), key
    assert len(EFFECTS) == sum(map(len, GROUPS.values())), "two effects of one name"
    for effect in EFFECTS.values():
        assert len({key.name for key in effect.keys}) == len(effect.keys), effect.name
        assert not effect.meaning.endswith("."), effect.name
    constants = next(key for key in ROWS["constant"][1] if key.name == "value")
    assert set(constants.words) == set(VALUES)
    assert set(TRAITS) == set(MEANINGS) == {trait for language in ("python", "cuda") for trait in builtin(language).traits}


def test_every_word_of_a_key_is_accepted_and_no_other() -> None:
    for key in all_keys():
        for word in key.words:
            assert parse_field(key, word) == ((word,) if key.kind == "words" else word)
        if key.words:
            with pytest.raises(ModelError, match="unknown"):
                parse_field(key, "nowhere")


@pytest.mark.parametrize("path", model_files(), ids=lambda path: path.stem)
def test_the_shipped_rows_pass_the_check_of_the_users(path: Path) -> None:
    """All but two names of types that C++ knows without a row."""
    data = load_file(path)
    calls = [row for row in data.get("call", ()) if row.get("type") != "pybind11::call_guard"]
    check([(path.name, {**data, "call": calls})])

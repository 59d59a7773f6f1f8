"""Where settings come from, and what is wrong with them."""

from __future__ import annotations

from pathlib import Path

import pytest

from streamlint.config.settings import Resolver, Settings, load
from streamlint.support.errors import ConfigError

pytestmark = pytest.mark.usefixtures("made_up_rules")


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_the_nearest_configuration_of_each_file(here):
    write(here / "pyproject.toml", '[tool.streamlint]\ndefault-stream = "legacy"\n')
    write(here / "sub/streamlint.toml", 'default-stream = "per-thread"\n')
    write(here / "sub/deep/pyproject.toml", '[project]\nname = "without-our-table"\n')
    resolver = Resolver()
    assert resolver.of_file(here / "a.py").default_stream == "legacy"
    assert resolver.of_file(here / "sub/a.py").default_stream == "per-thread"
    assert resolver.of_file(here / "sub/deep/a.py").default_stream == "per-thread"


def test_a_pyproject_that_only_mentions_streamlint_is_none_of_ours(here):
    write(here / "streamlint.toml", "preview = true\n")
    write(here / "sub/pyproject.toml", '[project]\ndependencies = ["streamlint"]\n')
    assert Resolver().of_file(here / "sub/a.py").preview


def test_streamlint_toml_before_pyproject(here):
    write(here / "pyproject.toml", "[tool.streamlint]\npreview = false\n")
    write(here / "streamlint.toml", "preview = true\n")
    assert Resolver().of_file(here / "a.py").preview


def test_no_configuration_is_the_default(here):
    assert Resolver(Settings()).of_file(here / "a.py") == Settings()


def test_extend(here):
    write(here / "base.toml", 'select = ["SL001", "SL015"]\nextend-exclude = ["x"]\ndefault-stream = "legacy"\nrequire-reasons = true\n')
    write(here / "sub/streamlint.toml", 'extend = "../base.toml"\nignore = ["SL001"]\nextend-exclude = ["y"]\nrequire-reasons = false\n')
    settings = load(here / "sub/streamlint.toml")
    assert settings.codes == {"SL015"}
    assert [(pattern.root, pattern.glob) for pattern in settings.extend_exclude] == [(here, "x"), (here / "sub", "y")]
    assert (settings.default_stream, settings.require_reasons, settings.root) == ("legacy", False, here / "sub")


def test_extend_in_a_circle(here):
    write(here / "a.toml", 'extend = "b.toml"\n')
    write(here / "b.toml", 'extend = "a.toml"\n')
    with pytest.raises(ConfigError, match="extends itself"):
        load(here / "a.toml")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("selct = []", "unknown key 'selct'; did you mean 'select'?"),
        ("extend_select = []", "did you mean 'extend-select'?"),
        ('select = "SL001"', "select: expected a list of strings, not 'SL001'"),
        ('select = ["SL002"]', "streamlint.toml:1: unknown rule 'SL002'; did you mean"),
        ('ignore = ["unpinned-non-blockin"]', "did you mean 'unpinned-non-blocking'?"),
        ("preview = 1", "preview: expected true or false, not 1"),
        ('default-stream = "legasy"', "'legasy' is none of auto, legacy, per-thread; did you mean 'legacy'?"),
        ('target-device = ["cuda"]', "is none of maybe, cuda"),
        ('output-format = "sarf"', "'sarf' is none of full"),
        ("baseline = 3", "baseline: expected a path, not 3"),
        ("extend = 3", "extend: expected a path, not 3"),
        ('per-file-ignores = ["SL001"]', "expected a table of patterns"),
        ('[per-file-ignores]\n"tests/*" = ["SL002"]', "per-file-ignores: unknown rule 'SL002'"),
        ('models = "x"', "models: expected a list of tables"),
        ("[[models]]\nclls = []", "models[0]: unknown key 'clls'"),
        ("preview = ", "Invalid value"),
    ],
)
def test_what_is_wrong_is_named_with_its_place(here, text, message):
    path = write(here / "streamlint.toml", text)
    with pytest.raises(ConfigError) as caught:
        load(path)
    assert message in str(caught.value)
    assert str(caught.value).startswith(str(path))


def test_a_pyproject_named_itself_must_have_our_table(here):
    with pytest.raises(ConfigError, match=r"has no \[tool.streamlint\] table"):
        load(write(here / "pyproject.toml", "[project]\n"))


def test_the_library_takes_keys_as_arguments(here):
    settings = Settings.of(select=["SL001"], default_stream="legacy", per_file_ignores={"tests/*": ["SL001"]})
    assert (settings.codes, settings.default_stream) == ({"SL001"}, "legacy")
    with pytest.raises(ConfigError, match="did you mean 'ignore'"):
        Settings.of(ignored=[])


def test_overrides_come_last(here):
    write(here / "streamlint.toml", 'select = ["SL001"]\npreview = true\n')
    resolver = Resolver(None, [("command line", {"select": ["SL005"], "preview": False})], force_exclude=True)
    settings = resolver.of_file(here / "a.py")
    assert (settings.codes, settings.preview, settings.force_exclude) == ({"SL005"}, False, True)
    assert resolver.sources() == [here / "streamlint.toml"]


def test_options_for_the_engine(here):
    options = Settings.of(select=["ALL"]).options()
    assert options.codes == {"SL001", "SL005", "SL007", "SL015", "SL901"}
    assert options.hidden_sync == "all-loops"
    assert Settings.of(select=["ALL"], ignore=["ALL"]).options().hidden_sync == "hot-loops"
    assert Settings.of(hidden_sync="all-loops").options().hidden_sync == "all-loops"
    assert [Settings.of(**keys).options().evidence for keys in ({}, {"preview": True}, {"evidence": "possible"})] == [
        "shown",
        "possible",
        "possible",
    ]
    assert hash(options) == hash(Settings.of(select=["ALL"]).options())

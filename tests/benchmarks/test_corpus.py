"""The corpus: its pins, how files are checked and unpacked, and what a coverage run compares. Nothing is downloaded."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import json
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="benchmarks are not in the source distribution")


def load(name: str, alias: str) -> Any:
    """A script of the benchmarks as a module; under another name, for `coverage` is also a well-known package."""
    spec = importlib.util.spec_from_file_location(alias, BENCHMARKS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[alias] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def corpus() -> Any:
    """The module `corpus`, under the name that `coverage.py` imports it by."""
    yield load("corpus", "corpus")
    sys.modules.pop("corpus")


@pytest.fixture(scope="module")
def coverage(corpus: ModuleType) -> Any:
    yield load("coverage", "benchmarks_coverage")
    sys.modules.pop("benchmarks_coverage")


def wheel(path: Path, files: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w") as bundle:
        for name, text in files.items():
            bundle.writestr(name, text)
    return path


def sdist(path: Path, files: dict[str, str], links: dict[str, str] | None = None, kind: bytes = tarfile.SYMTYPE) -> Path:
    with tarfile.open(path, "w:gz") as tape:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            tape.addfile(entry, io.BytesIO(text.encode()))
        for name, to in (links or {}).items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = kind, to
            tape.addfile(entry)
    return path


def pin_of(corpus: Any, archive: Path, kind: str = "wheel") -> Any:
    return corpus.Pin("some", "1.0", kind, hashlib.sha256(archive.read_bytes()).hexdigest(), "a test")


def tree_of(folder: Path) -> set[str]:
    return {file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file()}


class TestPins:
    def test_there_are_enough(self, corpus: Any) -> None:
        pins = corpus.read_pins()
        assert len(pins) >= 12
        assert {"deepspeed", "sglang", "transformers", "accelerate", "torchvision"} <= {pin.name for pin in pins}
        assert sum(pin.kind == "sdist" for pin in pins) >= 4

    def test_are_exact(self, corpus: Any) -> None:
        for pin in corpus.read_pins():
            assert re.fullmatch(r"[0-9][\w.]*", pin.version), pin
            assert re.fullmatch(r"[0-9a-f]{64}", pin.sha256), pin
            assert pin.reason, pin
            assert "\n" not in pin.reason

    def test_no_two_are_alike(self, corpus: Any) -> None:
        pins = corpus.read_pins()
        assert len({pin.sha256 for pin in pins}) == len({pin.name for pin in pins}) == len(pins)

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            ({"kind": "egg"}, "kind is 'egg', not one of wheel, sdist"),
            ({"sha256": "AB"}, "sha256 is not 64 lower-case hexadecimal digits"),
            ({"reason": None}, "needs name, version, kind, sha256 and reason"),
            ({"url": "x"}, "needs name, version, kind, sha256 and reason, nothing else"),
        ],
    )
    def test_a_wrong_pin_is_named(self, corpus: Any, tmp_path: Path, change: dict[str, str | None], said: str) -> None:
        table = {"name": "some", "version": "1.0", "kind": "wheel", "sha256": "a" * 64, "reason": "r", **change}
        file = tmp_path / "corpus.toml"
        file.write_text("[[package]]\n" + "".join(f'{key} = "{value}"\n' for key, value in table.items() if value is not None))
        with pytest.raises(corpus.CorpusError, match=f"some: {said}"):
            corpus.read_pins(file)

    def test_a_name_pinned_twice_is_refused(self, corpus: Any, tmp_path: Path) -> None:
        table = f'[[package]]\nname = "some"\nversion = "1"\nkind = "wheel"\nsha256 = "{"a" * 64}"\nreason = "r"\n'
        (tmp_path / "corpus.toml").write_text(table * 2)
        with pytest.raises(corpus.CorpusError, match="pinned twice: some"):
            corpus.read_pins(tmp_path / "corpus.toml")

    def test_an_unknown_name_gets_a_guess(self, corpus: Any) -> None:
        with pytest.raises(corpus.CorpusError, match=r"torchvison is not in corpus\.toml; did you mean torchvision\?"):
            corpus.choose(corpus.read_pins(), ["torchvison"])

    def test_names_choose(self, corpus: Any) -> None:
        pins = corpus.read_pins()
        assert corpus.choose(pins, []) == pins
        assert [pin.name for pin in corpus.choose(pins, ["vllm", "timm"])] == ["vllm", "timm"]

    def test_nothing_tells_of_a_machine_or_an_index(self) -> None:
        of_svg = "http://www.w3.org/2000/svg"  # names the format, and is not fetched
        for file in BENCHMARKS.iterdir():
            if file.suffix in {".py", ".toml", ".json"}:
                text = file.read_text(encoding="utf-8").replace(of_svg, "")
                assert not re.search(r"https?://|file://|/work/|/home/|/root/|\.org\b", text), file.name


class TestSettings:
    def test_the_environment_wins(self, corpus: Any) -> None:
        text = ":env:.index-url='env'\nglobal.index-url='global'\ndownload.index-url='download'\ninstall.index-url='install'\n"
        assert corpus.pip_settings(text) == {"index-url": "env"}

    def test_sections(self, corpus: Any) -> None:
        text = "download.cert='b'\nglobal.cert='a'\nglobal.extra-index-url='x y'\n"
        assert corpus.pip_settings(text) == {"cert": "b", "extra-index-url": "x y"}

    def test_each_index_is_asked_alone(self, corpus: Any) -> None:
        assert corpus.indexes({}) == [[]]
        assert corpus.indexes({"extra-index-url": "x\ny"}) == [[], ["--index-url", "x"], ["--index-url", "y"]]
        assert corpus.indexes({"index-url": "m", "extra-index-url": "x"}) == [["--index-url", "m"], ["--index-url", "x"]]


class TestDownload:
    @pytest.fixture
    def answers(self, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
        """What the finder will say, call by call; replaced by the command lines it got."""
        queue: list[Any] = []
        calls: list[list[str]] = []

        def run(command: list[str], **_: Any) -> Any:
            calls.append(command)
            code, out, err = queue.pop(0)
            return SimpleNamespace(returncode=code, stdout=out, stderr=err)

        monkeypatch.setattr(subprocess, "run", run)
        queue.append(calls)
        return queue

    def test_the_next_index_is_tried(self, corpus: Any, answers: list[Any], tmp_path: Path) -> None:
        calls = answers.pop()
        answers += [(1, "", "No matches are found."), (0, json.dumps({"local_path": "there"}), "")]
        pin = corpus.Pin("some", "1.0", "sdist", "a" * 64, "r")
        assert corpus.download(pin, tmp_path, {"index-url": "m", "extra-index-url": "x"}) == Path("there")
        assert [call[-2:] for call in calls] == [["--index-url", "m"], ["--index-url", "x"]]
        assert "some==1.0" in calls[0]
        assert "--no-binary" in calls[0]

    def test_failure_is_told(self, corpus: Any, answers: list[Any], tmp_path: Path) -> None:
        answers.pop()
        answers.append((1, "", "No matches are found."))
        with pytest.raises(corpus.CorpusError, match=r"some-1\.0: no wheel could be downloaded: No matches are found"):
            corpus.download(corpus.Pin("some", "1.0", "wheel", "a" * 64, "r"), tmp_path, {})

    def test_a_missing_finder_is_told(self, corpus: Any, answers: list[Any], tmp_path: Path) -> None:
        answers.pop()
        answers.append((1, "", "python: No module named unearth"))
        with pytest.raises(corpus.CorpusError, match="pip install unearth"):
            corpus.download(corpus.Pin("some", "1.0", "wheel", "a" * 64, "r"), tmp_path, {})


class TestUnpack:
    def test_a_wheel_as_it_is(self, corpus: Any, tmp_path: Path) -> None:
        archive = wheel(tmp_path / "some-1.0-py3-none-any.whl", {"some/a.py": "a", "some/sub/b.py": "b"})
        corpus.unpack(archive, tmp_path / "some-1.0")
        assert tree_of(tmp_path / "some-1.0") == {"some/a.py", "some/sub/b.py"}

    def test_a_source_distribution_without_its_top_folder(self, corpus: Any, tmp_path: Path) -> None:
        archive = sdist(tmp_path / "Some_1.tar.gz", {"Some_1/setup.py": "s", "Some_1/csrc/a.cu": "a"})
        corpus.unpack(archive, tmp_path / "some-1.0")
        assert tree_of(tmp_path / "some-1.0") == {"setup.py", "csrc/a.cu"}

    def test_symbolic_links_are_left_out(self, corpus: Any, tmp_path: Path) -> None:
        archive = sdist(tmp_path / "some.tar.gz", {"some/a.py": "a"}, {"some/b.py": "/etc/passwd", "some/c": ".."})
        corpus.unpack(archive, tmp_path / "some-1.0")
        assert tree_of(tmp_path / "some-1.0") == {"a.py"}

    def test_hard_links_become_files(self, corpus: Any, tmp_path: Path) -> None:
        archive = sdist(tmp_path / "some.tar.gz", {"some/a.py": "a"}, {"some/b.py": "some/a.py"}, tarfile.LNKTYPE)
        corpus.unpack(archive, tmp_path / "some-1.0")
        assert (tmp_path / "some-1.0" / "b.py").read_text() == "a"

    @pytest.mark.parametrize("name", ["../evil.py", "/evil.py", "some/../../evil.py", "some\\..\\evil.py", "c:/evil.py"])
    @pytest.mark.parametrize("build", [wheel, sdist])
    def test_no_member_leads_out(self, corpus: Any, tmp_path: Path, name: str, build: Any) -> None:
        inner = tmp_path / "inner"
        inner.mkdir()
        archive = build(tmp_path / ("x.whl" if build is wheel else "x.tar.gz"), {"some/a.py": "a", name: "evil"})
        with pytest.raises(corpus.CorpusError, match="unsafe member name"):
            corpus.unpack(archive, inner / "some-1.0")
        assert tree_of(tmp_path) == {archive.name}
        assert list(inner.iterdir()) == []

    def test_an_old_tree_is_replaced(self, corpus: Any, tmp_path: Path) -> None:
        (tmp_path / "some-1.0").mkdir()
        (tmp_path / "some-1.0" / "old.py").write_text("old")
        corpus.unpack(wheel(tmp_path / "some.whl", {"new.py": "new"}), tmp_path / "some-1.0")
        assert tree_of(tmp_path / "some-1.0") == {"new.py"}


class TestFetch:
    @pytest.fixture
    def archive(self, corpus: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """A wheel that any download brings."""
        made = wheel(tmp_path / "some.whl", {"some.py": "1"})
        monkeypatch.setattr(corpus, "configured", dict)
        monkeypatch.setattr(corpus, "download", lambda pin, folder, settings: made)
        return made

    def test_once(self, corpus: Any, archive: Path, tmp_path: Path) -> None:
        pin, folder = pin_of(corpus, archive), tmp_path / "to"
        assert corpus.fetch(pin, folder, {}).startswith("fetched, 0.0 MB")
        assert corpus.fetch(pin, folder, {}) == "there already"
        assert (folder / "some-1.0" / "some.py").read_text() == "1"

    def test_a_moved_pin_is_fetched_anew(self, corpus: Any, archive: Path, tmp_path: Path) -> None:
        corpus.fetch(pin_of(corpus, archive), tmp_path / "to", {})
        wheel(archive, {"some.py": "2"})
        assert corpus.fetch(pin_of(corpus, archive), tmp_path / "to", {}).startswith("fetched")
        assert (tmp_path / "to" / "some-1.0" / "some.py").read_text() == "2"

    def test_other_bytes_are_refused(self, corpus: Any, archive: Path, tmp_path: Path) -> None:
        pin = pin_of(corpus, archive)
        wheel(archive, {"some.py": "other"})
        actual = hashlib.sha256(archive.read_bytes()).hexdigest()
        with pytest.raises(corpus.CorpusError, match=f"not the pinned file: its sha256 is {actual}, corpus.toml says {pin.sha256}"):
            corpus.fetch(pin, tmp_path / "to", {})
        assert list((tmp_path / "to").iterdir()) == []

    def test_one_failure_does_not_stop_the_rest(
        self, corpus: Any, archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        bad = corpus.Pin("bad", "1.0", "wheel", "0" * 64, "r")
        monkeypatch.setattr(corpus, "read_pins", lambda: [bad, pin_of(corpus, archive)])
        assert corpus.main(["fetch", "--to", str(tmp_path / "to")]) == 2
        out, err = capsys.readouterr()
        assert "some-1.0: fetched" in out
        assert err.startswith("error: bad-1.0: some.whl is not the pinned file")

    def test_list(self, corpus: Any, capsys: pytest.CaptureFixture[str]) -> None:
        assert corpus.main(["list"]) == 0
        assert len(capsys.readouterr().out.splitlines()) == len(corpus.read_pins())

    def test_the_default_folder_is_outside_of_the_repository(self, corpus: Any) -> None:
        assert not corpus.default_folder().resolve().is_relative_to(BENCHMARKS.parent.resolve())


class TestCoverage:
    def report(self, tree: Path) -> Any:
        def finding(code: str, row: int) -> Any:
            return SimpleNamespace(code=code, message="m", span=SimpleNamespace(file=str(tree / "a.py"), row=row))

        told = {"functions": 7, "launches": 4, "launches_known": 3, "opaque": {"f": 1, "g": 5}, "failures": [f"{tree}/a.py:3: Boom"]}
        return SimpleNamespace(
            files=3, relevant=2, problems=["p"], findings=[finding("SL002", 1), finding("SL001", 2), finding("SL002", 9)], coverage=told
        )

    def test_a_report_becomes_a_row(self, coverage: Any, tmp_path: Path) -> None:
        row = coverage.row_of(self.report(tmp_path), 1.234, tmp_path)
        assert (row.files, row.relevant, row.problems, row.functions, row.launches, row.launches_known) == (3, 2, 1, 7, 4, 3)
        assert row.findings == {"SL001": 1, "SL002": 2}
        assert row.opaque == [("g", 5), ("f", 1)]
        assert row.crashes == ["a.py:3: Boom"]
        assert not row.died
        assert row.seconds == 1.2

    def test_opaque_calls_may_come_as_pairs(self, coverage: Any) -> None:
        assert coverage.top([["a", 1], ("b", 2)]) == [("b", 2), ("a", 1)]

    def test_paths_are_relative_to_the_tree(self, coverage: Any, tmp_path: Path) -> None:
        places = coverage.places_of(self.report(tmp_path), tmp_path)
        assert {(place.package, place.file) for place in places} == {(tmp_path.name, "a.py")}

    def test_the_record_survives_a_round_trip(self, coverage: Any, tmp_path: Path) -> None:
        rows = {"b-1": coverage.row_of(self.report(tmp_path), 1.0, tmp_path), "a-1": coverage.Row()}
        coverage.write_record(rows, tmp_path / "r.json")
        assert coverage.read_record(tmp_path / "r.json") == rows
        assert coverage.read_record(tmp_path / "none.json") == {}

    def test_a_partial_run_keeps_the_other_rows(self, coverage: Any, corpus: Any) -> None:
        pins = [corpus.Pin(name, "1", "wheel", "a" * 64, "r") for name in ("x", "y")]
        record = {"x-1": coverage.Row(files=1), "y-1": coverage.Row(files=2), "gone-1": coverage.Row()}
        new = coverage.merged(record, {"y-1": coverage.Row(files=3)}, pins)
        assert {name: row.files for name, row in new.items()} == {"x-1": 1, "y-1": 3}

    def test_a_run_that_died_is_not_recorded(self, coverage: Any, corpus: Any) -> None:
        pins = [corpus.Pin("x", "1", "wheel", "a" * 64, "r")]
        dead = {"x-1": coverage.Row(crashes=["Boom"])}
        assert coverage.merged({"x-1": coverage.Row(files=1)}, dead, pins) == {"x-1": coverage.Row(files=1)}
        assert coverage.merged({}, dead, pins) == {}
        assert coverage.died(dead) == 1

    @pytest.mark.parametrize(
        ("before", "now", "worse"),
        [
            ({"launches": 1000, "launches_known": 900}, {"launches": 1000, "launches_known": 895}, []),
            (
                {"launches": 1000, "launches_known": 900},
                {"launches": 1000, "launches_known": 894},
                ["p: launches whose stream is known: 90.0% before, 89.4% now"],
            ),
            ({"copies": 10, "copies_known": 5}, {"copies": 0}, ["p: copies whose memory is known: 50.0% before, - now"]),
            ({"copies": 10, "copies_known": 5}, {"copies": 10, "copies_known": 9}, []),
            ({}, {"crashes": ["Boom"]}, ["p: crash: Boom"]),
            ({"crashes": ["Boom"]}, {"crashes": ["Boom"]}, []),
            ({"copies": 10, "copies_known": 5}, {"crashes": ["Boom"]}, ["p: crash: Boom"]),
        ],
    )
    def test_what_is_worse(self, coverage: Any, before: dict[str, Any], now: dict[str, Any], worse: list[str]) -> None:
        assert list(coverage.regressions({"p": coverage.Row(**before)}, {"p": coverage.Row(**now)})) == worse

    def test_a_new_package_is_not_worse(self, coverage: Any) -> None:
        assert list(coverage.regressions({}, {"p": coverage.Row(launches=5)})) == []

    def test_the_table_ends_with_the_sum(self, coverage: Any) -> None:
        rows = {"a-1": coverage.Row(files=1, launches=2, launches_known=1), "b-1": coverage.Row(files=2, findings={"SL001": 3})}
        lines = coverage.markdown(rows).splitlines()
        assert len({line.count("|") for line in lines}) == 1
        assert lines[-1].startswith("| **all** | 3 | 0 | 0 | 3 | 0 | 0 | 0 | 2 | 50.0% | 0 | - |")

    def test_a_sample_is_repeatable_and_rules_are_apart(self, coverage: Any) -> None:
        def places(code: str, count: int) -> list[Any]:
            return [coverage.Place("p", "a.py", line, code, "m") for line in range(count)]

        alone = coverage.sampled(places("SL002", 50), 3, seed=1)
        beside = coverage.sampled([*places("SL001", 2), *reversed(places("SL002", 50))], 3, seed=1)
        assert len(alone) == 3
        assert beside == places("SL001", 2) + alone
        assert coverage.sampled(places("SL002", 50), 3, seed=2) != alone

    @pytest.mark.parametrize(("line", "first", "last"), [(1, 1, 12), (20, 14, 25), (30, 19, 30)])
    def test_a_place_is_shown_with_twelve_lines(self, coverage: Any, tmp_path: Path, line: int, first: int, last: int) -> None:
        (tmp_path / "p").mkdir()
        (tmp_path / "p" / "a.py").write_text("".join(f"line {number}\n" for number in range(1, 31)))
        head, message, *lines = coverage.shown(coverage.Place("p", "a.py", line, "SL001", "msg"), tmp_path).splitlines()
        assert (head, message) == (f"SL001 p/a.py:{line}", "    msg")
        assert [text.split("| ")[1] for text in lines] == [f"line {number}" for number in range(first, last + 1)]
        assert [text for text in lines if text.startswith(">")] == [f"> {line:>5} | line {line}"]

    def test_a_dead_child_is_a_crash(self, coverage: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        script = tmp_path / "dies.py"
        script.write_text("raise SystemExit('went wrong')")
        monkeypatch.setattr(coverage, "__file__", str(script))
        row, places = coverage.measure(tmp_path, limit=60)
        assert row.crashes == ["went wrong"]
        assert places == []

    def test_a_child_without_end_is_a_crash(self, coverage: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        script = tmp_path / "hangs.py"
        script.write_text("import time; time.sleep(60)")
        monkeypatch.setattr(coverage, "__file__", str(script))
        assert coverage.measure(tmp_path, limit=0.5)[0].crashes == ["no end within 0 s"]

    def test_unfetched_packages_are_named(self, coverage: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        assert coverage.main(["--corpus", str(tmp_path), "timm"]) == 2
        assert re.search(r"error: not fetched: timm-\S+; run benchmarks/corpus\.py fetch", capsys.readouterr().err)

"""Draws at first sight: which names are taken, what is left out, how archives are unpacked, and how judgments are kept and counted."""

from __future__ import annotations

import importlib
import io
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
pytestmark = pytest.mark.skipif(not BENCHMARKS.is_dir(), reason="benchmarks are not in the source distribution")
USERS = {f"p-1.0/{letter}.py": "import torch\n" for letter in "abc"}
OURS = ("first_sight", "precision", "corpus", "ledger", "shares")


@pytest.fixture
def sight(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The script as a module."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    for name in OURS:
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield importlib.import_module("first_sight")
    for name in OURS:
        sys.modules.pop(name, None)


def sdist(path: Path, files: dict[str, str], link: tuple[str, str] | None = None) -> None:
    with tarfile.open(path, "w:gz") as tape:
        for name, text in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            tape.addfile(entry, io.BytesIO(text.encode()))
        if link:
            entry = tarfile.TarInfo(link[0])
            entry.type, entry.linkname = tarfile.SYMTYPE, link[1]
            tape.addfile(entry)


def finding(sight: Any, mark: str, code: str = "SL020", **judged: str) -> Any:
    """A finding that readers judged so."""
    said = [sight.ledger.Judgment(reader, "2026-11-29", verdict, "so", "time" * (verdict == "real")) for reader, verdict in judged.items()]
    return sight.Finding("some", "1.0", "a.py", 3, code, 'a "message"', mark * 32, judged=tuple(said))


class TestNames:
    @pytest.mark.parametrize("name", ["torchio", "my-nn", "fast_rl", "speech.gan", "Diffusion-Kit", "who/some-gpu"])
    def test_with_a_word_of_the_field_are_taken(self, sight: Any, name: str) -> None:
        assert sight.of_the_field(name)

    @pytest.mark.parametrize("name", ["organize", "annotate", "world", "torch-club/calendar"])
    def test_of_something_else_are_not(self, sight: Any, name: str) -> None:
        assert not sight.of_the_field(name)

    def test_are_compared_as_an_index_does(self, sight: Any) -> None:
        assert {sight.normalised(name) for name in ("My__Torch.lib", "my-torch-lib", "who/MY.Torch_lib")} == {"my-torch-lib"}

    def test_that_occur_are_found_within_longer_ones(self, sight: Any) -> None:
        known = sight.mentioned(["see Torch_Kit.models, at the end: gpu-run.", "deeptorch"])
        assert {"torch-kit", "torch-kit-models", "gpu-run", "deeptorch"} <= known
        assert "torch" in known  # a part of another name is no first sight either
        assert "deep" not in known

    def test_that_are_known_change_the_order_of_no_other(self, sight: Any) -> None:
        names = [f"torch-{number}" for number in range(40)]
        all_of_them = sight.order(names, 7, set())
        assert sight.order(reversed(names), 7, {"torch-3"}) == [name for name in all_of_them if name != "torch-3"]
        assert sight.order(names, 8, set()) != all_of_them

    def test_of_this_repository_are_read(self, sight: Any) -> None:
        if not (BENCHMARKS.parent / ".git").exists():
            pytest.skip("no checkout")
        assert {"captum", "torch-ema"} <= sight.mentioned(sight.repository())


class TestDrawing:
    def drawn(self, sight: Any, folder: Path, names: list[str], count: int = 9) -> dict[str, str]:
        return dict(sight.draw(names, count, sight.archives(folder), folder / "trees"))

    def test_keeps_what_uses_a_gpu(self, sight: Any, tmp_path: Path) -> None:
        sdist(tmp_path / "torch_one-2.1.tar.gz", USERS)
        sdist(tmp_path / "torch-two-1.0.tar.gz", {**USERS, "p-1.0/c.py": "# import torch\n"})
        with zipfile.ZipFile(tmp_path / "torch_three-3-py3-none-any.whl", "w") as bundle:
            for name in ("k.cu", "l.cpp"):
                bundle.writestr(name, "#include <cuda_runtime.h>\n")
            bundle.writestr("m.pyx", "from numba import jit, cuda\n")
        became = self.drawn(sight, tmp_path, ["torch-one", "torch-two", "torch-three", "torch-four"])
        assert became == {
            "torch-one": "torch-one-2.1",
            "torch-two": "fewer than 3 files use a GPU",
            "torch-three": "torch-three-3",
            "torch-four": "no archive",
        }
        trees = sorted(path.name for path in (tmp_path / "trees").iterdir() if not path.name.startswith("."))
        assert trees == ["torch-one-2.1", "torch-three-3"]

    def test_ends_when_there_are_enough(self, sight: Any, tmp_path: Path) -> None:
        for name in ("torch-one", "torch-two"):
            sdist(tmp_path / f"{name}-1.0.tar.gz", USERS)
        assert list(self.drawn(sight, tmp_path, ["torch-one", "torch-two"], 1)) == ["torch-one"]

    @pytest.mark.parametrize("name", ["../out.py", "p-1.0/../../out.py", "/out.py"])
    def test_lets_nothing_out_of_the_folder(self, sight: Any, tmp_path: Path, name: str) -> None:
        sdist(tmp_path / "torch-one-1.0.tar.gz", {**USERS, name: "import torch\n"})
        assert "unsafe member name" in self.drawn(sight, tmp_path, ["torch-one"])["torch-one"]
        assert not list(tmp_path.rglob("out.py"))
        assert not list((tmp_path / "trees").iterdir())

    def test_follows_no_link(self, sight: Any, tmp_path: Path) -> None:
        sdist(tmp_path / "torch-one-1.0.tar.gz", USERS, ("p-1.0/link.py", "/etc/passwd"))
        self.drawn(sight, tmp_path, ["torch-one"])
        assert not (tmp_path / "trees" / "torch-one-1.0" / "link.py").is_symlink()
        assert not (tmp_path / "trees" / "torch-one-1.0" / "link.py").exists()

    def test_says_of_a_broken_archive_that_it_is_one(self, sight: Any, tmp_path: Path) -> None:
        (tmp_path / "torch-one-1.0.zip").write_bytes(b"no archive")
        assert self.drawn(sight, tmp_path, ["torch-one"])["torch-one"].startswith("not unpacked: ")


class TestJudgments:
    def test_are_kept_as_they_are_written(self, sight: Any, tmp_path: Path) -> None:
        found = [finding(sight, "a", one="real", two="not real", settled="real"), finding(sight, "b")]
        sight.write(tmp_path / "7.toml", found)
        assert sight.read(tmp_path / "7.toml") == found

    def test_stay_when_the_findings_are_written_anew(self, sight: Any, tmp_path: Path) -> None:
        path = tmp_path / "7.toml"
        sight.write(path, [finding(sight, "a", one="real"), finding(sight, "b", one="real")], "seed = 7\n")
        sight.judge(path, [finding(sight, "a"), finding(sight, "c")])
        assert sight.read(path) == [finding(sight, "a", one="real"), finding(sight, "c")]
        assert path.read_text(encoding="utf-8").startswith("seed = 7\n")

    def test_without_a_verdict_or_reason_are_refused(self, sight: Any, tmp_path: Path) -> None:
        sight.write(tmp_path / "7.toml", [finding(sight, "a", one="perhaps")])
        with pytest.raises(sight.ledger.LedgerError, match="'perhaps' is no verdict"):
            sight.read(tmp_path / "7.toml")

    def test_come_from_a_report_without_what_could_not_be_read(self, sight: Any) -> None:
        one = {"filename": "a.py", "location": {"row": 3}, "code": "SL020", "message": "m", "fingerprint": "a" * 32}
        report = {"who+some-kit-1.0": {"findings": [one, {**one, "code": "SL000"}]}}
        assert sight.told(report) == [sight.Finding("who+some-kit", "1.0", "a.py", 3, "SL020", "m", "a" * 32)]

    def test_are_counted_by_rule(self, sight: Any) -> None:
        found = [
            finding(sight, "a", one="real", two="real"),
            finding(sight, "b", one="real", two="not real"),
            finding(sight, "c", one="real", two="not real", settled="not real"),
            finding(sight, "d", "SL009", one="real"),
            finding(sight, "e", "SL009"),
        ]
        rows = {line.split()[0]: line.split()[1:] for line in sight.table(found)}
        assert rows["SL020"][:7] == ["3", "3", "1", "1", "1", "33", "%"]
        assert rows["SL009"] == ["2", "1", "1", "0", "0", "100", "%", "[21,", "100]"]
        assert rows["all"][:5] == ["5", "4", "2", "1", "1"]
        assert list(sight.by_reader(found)) == ["one: 4 of 4 real", "two: 1 of 3 real", "readers differ: SL020 some a.py:3"]
        assert [one.entry.verdict for one in found] == ["real", "unclear", "not real", "real", ""]


def test_what_is_stored_can_be_read(sight: Any) -> None:
    for path in sight.FOLDER.glob("*.toml"):
        assert sight.read(path)

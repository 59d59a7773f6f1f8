"""What is kept is never wrong: after each kind of edit a run with the cache tells what one without it tells."""

from __future__ import annotations

import json
import os
import random
import textwrap
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from cache.conftest import OVERRIDES, report
from cache.projects import EDITS, PROJECT, write

from streamlint import linter
from streamlint.cache import open_store, runs
from streamlint.cache.store import Store
from streamlint.config import Resolver
from streamlint.relint import Relint

Check = Callable[..., tuple[int, str]]


def undone(what: str) -> dict[str, str | None]:
    return {name: PROJECT.get(name) for name in EDITS[what]}


def test_a_second_run_analyses_nothing(cache: Path, checked: list[str]) -> None:
    first = report(cache)
    assert checked == []
    assert sorted({finding.code for finding in first.findings}) == ["SL001", "SL003", "SL005", "SL007", "SL009", "SL012", "SL016"]
    assert report(None) == first


@pytest.mark.parametrize("what", EDITS)
def test_warm_is_cold(cache: Path, what: str) -> None:
    before = report(cache)
    write(EDITS[what])
    warm = report(cache)
    assert warm == report(None)
    assert warm != before, "an edit that changes nothing shows nothing"
    assert report(cache) == warm
    write(undone(what))
    assert report(cache) == before


def test_edits_in_any_order(cache: Path) -> None:
    chance = random.Random(7)
    for _ in range(6):
        for what in chance.sample(sorted(EDITS), 2):
            write(EDITS[what] if chance.random() < 0.6 else undone(what))
        assert report(cache) == report(None)


def test_an_edit_costs_what_rests_on_it(cache: Path, checked: list[str]) -> None:
    write({name: None for name in PROJECT if name.startswith("csrc/")})
    report(cache)
    checked.clear()
    write(EDITS["an imported file"])
    report(cache)
    assert checked == ["app/loading.py", "app/train.py"]
    checked.clear()
    write({"app/streams.py": PROJECT["app/streams.py"].replace("1 << 20", "1 << 19")})
    report(cache)
    assert checked == ["app/streams.py", "app/use.py"]


def test_an_edit_of_cpp_costs_what_includes_and_links_to_it(cache: Path, checked: list[str]) -> None:
    kernel = """
        __global__ void {name}_kernel(float* x) {{ x[0] = 1; }}

        void {name}(float* x, cudaStream_t stream) {{
          {name}_kernel<<<1, 32, 0, stream>>>(x);
        }}
        """
    caller = """
        #include "one.h"

        void both(float* x, cudaStream_t stream) {
          one(x, stream);
        }
        """
    write(dict.fromkeys(PROJECT))
    write({f"{name}.cu": textwrap.dedent(kernel).format(name=name) for name in ("one", "two", "three")})
    write({"one.h": "#include <cuda_runtime.h>\nvoid one(float* x, cudaStream_t stream);\n", "caller.cu": textwrap.dedent(caller)})
    report(cache)

    def cost(name: str, old: str, new: str) -> list[str]:
        write({f"{name}.cu": textwrap.dedent(kernel).format(name=name).replace(old, new, 1)})
        checked.clear()
        warm, looked_at = report(cache), sorted(checked)
        assert warm == report(None)
        return looked_at

    assert cost("two", "<<<", "<<<(void)0, ") == ["two.cu"]
    assert cost("one", "32", "64") == ["caller.cu", "one.cu", "one.h"]


@pytest.mark.parametrize("first", ["app/a_first.py", "app/z_last.py"])
def test_what_others_ask_of_a_shared_file_costs_nobody_else(cache: Path, checked: list[str], first: str) -> None:
    shared = """
        import torch
        from app import between


        def near(x):
            return x.cuda()


        def through(x):
            return between.on(x.cuda())
        """
    between = "import torch\nfrom app import far\n\n\ndef on(x):\n    return far.away(x.cuda())\n"
    user = """
        import torch
        from app.shared import {name}


        def run(batches):
            stream = torch.cuda.Stream()
            for batch in batches:
                {name}(batch)
        """
    far = "import torch\n\n\ndef away(x):\n    return x.to('cpu', non_blocking=True)\n"
    second = {"app/a_first.py": "app/z_last.py", "app/z_last.py": "app/a_first.py"}[first]
    write(dict.fromkeys(PROJECT))
    write({"app/shared.py": textwrap.dedent(shared), "app/between.py": between, "app/far.py": far, "app/__init__.py": ""})
    write({name: textwrap.dedent(user).format(name=said) for name, said in ((first, "near"), (second, "through"))})
    report(cache)
    checked.clear()
    write({"app/far.py": far.replace("True", "False")})
    warm, looked_at = report(cache), set(checked)
    assert warm == report(None)
    assert {"app/far.py", second} <= looked_at
    assert first not in looked_at, "it has to do with the shared file, and not with what others ask of that"


def test_an_edit_of_cpp_costs_only_the_python_that_comes_to_it(cache: Path, checked: list[str]) -> None:
    source = """
        #include <torch/extension.h>

        void {name}(torch::Tensor x) {{
          float* buffer;
          cudaMalloc(&buffer, 64);
          cudaFree(buffer);
        }}

        PYBIND11_MODULE(_{name}, m) {{ m.def("{name}_all", &{name}); }}
        """
    caller = """
        import torch
        import _{name}


        def run(x):
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                _{name}.{name}_all(x.cuda())
        """
    write(dict.fromkeys(PROJECT))
    for name in ("fold", "spread"):
        write({f"{name}.cpp": textwrap.dedent(source).format(name=name), f"use_{name}.py": textwrap.dedent(caller).format(name=name)})
    report(cache)

    def cost(name: str, old: str, new: str) -> list[str]:
        write({f"{name}.cpp": textwrap.dedent(source).format(name=name).replace(old, new)})
        checked.clear()
        warm, looked_at = report(cache), sorted(checked)
        assert warm == report(None)
        assert report(cache) == warm
        return looked_at

    assert cost("fold", "64", "128") == ["fold.cpp", "use_fold.py"]
    assert cost("spread", "64", "128") == ["spread.cpp", "use_spread.py"]
    # What Python can call has changed, and any of it may call that.
    assert cost("fold", "fold_all", "fold_some") == ["fold.cpp", "use_fold.py", "use_spread.py"]


def test_a_file_more_costs_no_one_who_cannot_import_it(cache: Path, checked: list[str]) -> None:
    batches = """
        import torch
        from torch.utils.data import DataLoader, Dataset


        class Rows(Dataset):
            def __getitem__(self, index):
                return torch.ones(8).cuda()


        def run():
            for batch in DataLoader(Rows(), num_workers=2):
                batch.to("cuda", non_blocking=True)
        """
    starts = "import torch.multiprocessing as mp\n\nif __name__ == '__main__':\n    mp.set_start_method('spawn')\n    mp.cuda = 1\n"
    write(dict.fromkeys(PROJECT))
    write({"app/batches.py": textwrap.dedent(batches), "app/begin.py": starts.replace("import t", "import app.other\nimport t")})
    report(cache)
    checked.clear()
    write({"app/more.py": "import torch\n\nSTREAM = torch.cuda.Stream()\n"})
    warm, looked_at = report(cache), list(checked)
    assert warm == report(None)
    assert looked_at == ["app/more.py"]
    checked.clear()
    write({"app/begin.py": starts.replace("import t", "import app.batches\nimport t")})
    tied, looked_at = report(cache), list(checked)
    assert tied == report(None)
    codes = [{finding.code for finding in each.findings} for each in (warm, tied)]
    assert codes[0] - codes[1] == {"SL025"}, "now imports tie them together: its workers are spawned"
    assert looked_at == ["app/begin.py"], "which is asked of the program"


def test_a_comment_costs_nothing(cache: Path, checked: list[str]) -> None:
    report(cache)
    write(
        {
            "app/loading.py": textwrap.dedent(PROJECT["app/loading.py"]).rstrip()
            + "  # one word more: torch.cuda.synchronize()\n# and a line\n"
        }
    )
    checked.clear()
    warm, looked_at = report(cache), list(checked)
    assert warm == report(None)
    assert looked_at == []


def test_how_processes_start_costs_only_those_who_are_told(cache: Path, checked: list[str]) -> None:
    batches = """
        import torch
        from torch.utils.data import DataLoader


        def run(data):
            for batch in DataLoader(data, num_workers=2):
                batch.to("cuda", non_blocking=True)
                torch.cuda.synchronize()
        """
    aside = "import torch\n\n# start_method: as the system likes\nSTREAM = torch.cuda.Stream()\n"
    write(dict.fromkeys(PROJECT))
    write({"app/batches.py": textwrap.dedent(batches), "app/aside.py": aside})
    report(cache)
    checked.clear()
    write({"app/aside.py": aside.replace("()", "(priority=-1)")})
    report(cache)
    assert checked == ["app/aside.py"]


def test_a_change_in_the_same_tick_of_the_clock(cache: Path) -> None:
    before, path = report(cache), Path("app/loading.py")
    facts = path.stat()
    path.write_text(path.read_text(encoding="utf-8").replace("PINNED = False", "PINNED = 1 == 1"), encoding="utf-8")
    path.write_text(path.read_text(encoding="utf-8").replace("PINNED = 1 == 1", "PINNED = True "), encoding="utf-8")
    os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    assert path.stat().st_size == facts.st_size
    warm = report(cache)
    assert warm != before
    assert warm == report(None)


@pytest.mark.parametrize("changed", [False, True])
def test_what_was_just_written_is_looked_at_once_more_at_the_end(cache: Path, monkeypatch: pytest.MonkeyPatch, changed: bool) -> None:
    path, later = Path("app/loading.py"), 3_000_000_000
    calls: list[int] = []

    class Clock:
        @staticmethod
        def time_ns() -> int:
            calls.append(1)
            return time.time_ns() + later * (len(calls) > 1)

    path.write_text(path.read_text(encoding="utf-8").replace("PINNED = False", "PINNED = 1 == 1"), encoding="utf-8")
    if changed:  # between the first look at it and the last one
        plain = linter._Run._merge
        text = path.read_text(encoding="utf-8").replace("1 == 1", "True ")
        monkeypatch.setattr(linter._Run, "_merge", lambda *given: (path.write_text(text, encoding="utf-8"), plain(*given)))
    monkeypatch.setattr(runs, "time", Clock)
    report(cache)
    assert len(calls) > 1
    monkeypatch.undo()
    written: list[str] = []
    write = Store.write_bytes
    monkeypatch.setattr(Store, "write_bytes", lambda self, kind, *rest: (written.append(kind), write(self, kind, *rest)))
    monkeypatch.chdir(cache.parent / "project")
    assert report(cache) == report(None)
    assert ("runs" in written) is changed


def test_a_tree_with_new_dates_is_known_by_its_content(cache: Path, checked: list[str]) -> None:
    before = report(cache)
    for name in PROJECT:
        os.utime(name, (1e9, 1e9))
    assert report(cache) == before
    assert checked == []


def test_a_baseline_is_read_anew(check: Check, tmp_path: Path) -> None:
    listed = tmp_path / "known.json"
    check("csrc", "--write-baseline", str(listed))
    known = ("csrc", "--baseline", str(listed))
    assert check(*known)[0] == 0
    listed.write_text(json.dumps({**json.loads(listed.read_text()), "findings": []}))
    loud = check(*known)
    assert loud[0] == 1
    assert loud == check(*known, "--no-cache")


def test_fixes_are_kept_and_still_applied(check: Check) -> None:
    first = check("app/streams.py")
    assert '"applicability": "safe"' in first[1]
    assert check("app/streams.py") == first
    assert check("app/streams.py", "--fix", "-q") == (0, "[]\n")
    assert "synchronize" in Path("app/streams.py").read_text(encoding="utf-8")


def test_fixes_are_tried_again_only_where_what_they_rest_on_changed(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[str] = []
    plain = Relint.findings

    def findings(self: Relint, path: str, text: str, codes: frozenset[str]) -> object:
        tried.append(path)
        return plain(self, path, text, codes)

    monkeypatch.setattr(Relint, "findings", findings)

    def fixes(store: Path | None = cache, trials: bool = False) -> list[tuple[str, object]]:
        resolver = Resolver(None, [("test", OVERRIDES)], default_excludes=False)
        tried.clear()
        found = linter.run(["app"], resolver, fixes=True, trials=trials, store=open_store(store) if store else None)
        return [(f.span.file, f.fix) for f in found.findings]

    first = fixes()
    assert "app/streams.py" in tried
    write({"app/aside.py": "import torch\n\nSTREAM = torch.cuda.Stream()\n"})
    again = fixes()
    assert tried == []
    assert [fix for fix in again if fix[0] != "app/aside.py"] == first
    assert again == fixes(None)
    # What is written into files comes from no cache.
    assert fixes(trials=True) == again
    assert "app/streams.py" in tried
    write({"app/streams.py": PROJECT["app/streams.py"].replace("1 << 20", "1 << 19")})
    changed = fixes()
    assert "app/streams.py" in tried
    assert changed == fixes(None)


@pytest.mark.parametrize(
    "words", [("--select", "SL003"), ("--ignore", "SL003"), ("--coverage",), ("--select", "ALL"), ("--statistics",), ("app/train.py",)]
)
def test_other_options_have_other_records(check: Check, words: tuple[str, ...]) -> None:
    check("app", "csrc")
    paths = () if words[0].endswith(".py") else ("app", "csrc")
    cold = check(*paths, *words, "--no-cache")
    assert check(*paths, *words) == cold
    assert check(*paths, *words) == cold

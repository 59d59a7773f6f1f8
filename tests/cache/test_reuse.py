"""What is kept is never wrong: after each kind of edit a run with the cache tells what one without it tells."""

from __future__ import annotations

import json
import os
import random
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest
from cache.conftest import report
from cache.projects import EDITS, PROJECT, write

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


@pytest.mark.parametrize(
    "words", [("--select", "SL003"), ("--ignore", "SL003"), ("--coverage",), ("--select", "ALL"), ("--statistics",), ("app/train.py",)]
)
def test_other_options_have_other_records(check: Check, words: tuple[str, ...]) -> None:
    check("app", "csrc")
    paths = () if words[0].endswith(".py") else ("app", "csrc")
    cold = check(*paths, *words, "--no-cache")
    assert check(*paths, *words) == cold
    assert check(*paths, *words) == cold

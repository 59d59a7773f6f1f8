"""``streamlint trace``: recordings read from files, exit codes, options, what is said of bad input, and ``check --profile``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fake_runs import MS, Run, save

from streamlint import cli
from streamlint.commands import trace as command
from streamlint.support.errors import StreamlintError
from streamlint.trace.model import Frame
from streamlint.trace.recording.sessions import Session

TRAIN = """\
import torch


def train(model, loader, optimizer):
    running = 0.0
    for images, labels in loader:
        loss = torch.nn.functional.cross_entropy(model(images.cuda()), labels.cuda())
        optimizer.zero_grad()
        loss.backward()
        clip(model)
        optimizer.step()
        running += loss.item()
    return running


def evaluate(model, scores):
    side = torch.cuda.Stream()
    data = torch.randn(1 << 20, device="cuda")
    with torch.cuda.stream(side):
        out = data * 2
    return out.cpu()
"""
ITEM, CLIP = 12, 10


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("STREAMLINT_NO_CACHE", "1")
    Path("src").mkdir()
    Path("src/train.py").write_text(TRAIN)
    return tmp_path


def recorded(slow: int = 3 * MS, file: str = "src/train.py", path: str = "run.slt", session: str = "") -> Path:
    """Ten steps with a wait in lines 10 and 12, behind which the host is slow."""
    run = Run()
    for _ in range(10):
        run.launch(MS).wait(Frame(str(Path(file).absolute()), CLIP, "train")).host(MS)
        run.launch(MS).wait(Frame(str(Path(file).absolute()), ITEM, "train")).host(slow)
    return save(run.launch(MS).done(), Path(path), session)


def told(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = cli.main(["trace", *words])
    out, err = capsys.readouterr()
    return code, out, err


def test_from_a_recording_to_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    recorded()
    code, out, err = told(capsys, "run.slt", "src", "--preview")
    assert code == 1
    assert err.splitlines()[-1] == "1 of 4 findings costs 16 % of the run; 1 stall has no finding"
    gain = "without the wait about 10.0 ms shorter (estimate)"
    assert (
        f"train.py:12 in train\n    running += loss.item()\n    cudaStreamSynchronize; {gain}\n    SL020 hidden-sync-in-hot-loop: " in out
    )
    assert "    no finding: line 10 calls `clip`, whose body is unknown: no model says what it does\n" in out
    assert [line.split()[:2] for line in out.splitlines() if line.startswith("RACED")] == [["RACED", "ONLY"]] * 3


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ((), 1),
        (("--exit-zero",), 0),
        (("--ignore", "SL020"), 0),
        (("--threshold", "90%"), 0),
        (("--threshold", "20ms"), 0),
        (("--threshold", "5ms"), 1),
        (("--fail-over", "10%"), 1),
        (("--fail-over", "20%"), 0),
        (("--fail-over", "5ms"), 1),
        (("--fail-over", "0.1s"), 0),
    ],
)
def test_exit_codes(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], code: int) -> None:
    recorded()
    assert told(capsys, "run.slt", "src", *words)[0] == code


def test_nothing_costs(capsys: pytest.CaptureFixture[str]) -> None:
    recorded(slow=1000)
    code, out, err = told(capsys, "run.slt", "src", "--select", "SL020", "--threshold", "50%")
    assert (code, err.splitlines()[-1]) == (0, "the finding costs nothing in this run; no stall is without a finding")
    assert "CHEAP        src/train.py:12" in out


def test_a_rule_that_is_off_is_named_as_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    recorded()
    _, out, _ = told(capsys, "run.slt", "src", "--ignore", "SL020", "--output-format", "json")
    stalls = {stall["cost"]["lines"][0]: (stall["kind"], stall["reason"]) for stall in json.loads(out)["stalls"]}
    assert stalls[ITEM] == ("rule is off", "SL020: the rule is not among those that were selected")
    assert stalls[CLIP][0] == "unmodelled call"


def test_files_that_are_not_linted_and_lines_that_are_not_known(capsys: pytest.CaptureFixture[str]) -> None:
    Path("other.py").touch()
    run = Run()
    for frames in ((Frame(str(Path("other.py").absolute()), 3, "f"),), ()):
        run.launch(MS).wait(*frames).host(3 * MS)
    save(run.launch(MS).done(), Path("run.slt"))
    _, out, _ = told(capsys, "run.slt", "src", "--output-format", "json")
    assert [(stall["kind"], stall["cost"]["filename"]) for stall in json.loads(out)["stalls"]] == [("no line", ""), ("outside", "other.py")]


EVALUATE = """\
import torch


def train(model, loader, optimizer, table):
    for images, labels in loader:
        outputs = model(images.to("cuda", non_blocking=True))
        loss = torch.nn.functional.cross_entropy(outputs, labels.cuda())
        optimizer.zero_grad()
        loss.backward()
        if loss.item() > 10.0:
            break
        optimizer.step()
    pinned = torch.zeros(1 << 20, pin_memory=True).to("cuda", non_blocking=True)
    rows = torch.zeros(1 << 20).to("cuda")
    for row in rows.cuda():
        print(row.item())
"""


def test_reasons_say_what_was_let_pass_and_why(capsys: pytest.CaptureFixture[str]) -> None:
    """The round needs a value, no loop is around it, memory is not known, memory is known to be pinned, a copy is synchronous."""
    Path("src/evaluate.py").write_text(EVALUATE)
    lines = {10: "let pass", 16: "no loop", 6: "unknown memory", 13: "let pass", 14: "let pass"}
    run = Run()
    for _ in range(3):
        for line in lines:
            run.launch(MS).wait(Frame(str(Path("src/evaluate.py").absolute()), line, "train")).host(3 * MS)
    save(run.launch(MS).done(), Path("run.slt"))
    _, out, _ = told(capsys, "run.slt", "src", "--output-format", "json")
    stalls = {stall["cost"]["lines"][0]: (stall["kind"], stall["reason"]) for stall in json.loads(out)["stalls"]}
    assert {line: stalls[line][0] for line in stalls} == lines
    assert stalls[10][1].endswith("the round needs the value: line 10 decides by it")
    assert "the host memory of the copy in line 13 is pinned" in stalls[13][1]
    assert "line 14 is synchronous" in stalls[14][1]


def test_reasons_that_the_recording_shows(capsys: pytest.CaptureFixture[str]) -> None:
    """Calls that came once, and asynchronous copies of pinned memory: nothing has to be asked of the code."""
    here = str(Path("src/train.py").absolute())
    run = Run().launch(MS).wait(Frame(here, ITEM, "train")).wait(Frame(here, ITEM, "train")).host(3 * MS)
    for length in (MS, 9 * MS, 9 * MS, 9 * MS):
        run.launch(1).copy(Frame(here, 7, "train"), count=1 << 20, length=length, source="pinned")
    save(run.launch(MS).done(), Path("run.slt"))
    _, out, _ = told(capsys, "run.slt", "src", "--ignore", "SL020", "--output-format", "json")
    stalls = {stall["cost"]["lines"][0]: (stall["kind"], stall["reason"]) for stall in json.loads(out)["stalls"]}
    assert stalls[ITEM] == (
        "ran once",
        "its 2 calls came one behind the other, with no work in between: no round repeats the line in this run",
    )
    assert stalls.get(7, ("no wait",))[0] == "no wait"


def test_uploads_that_wait_say_how_fast_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    Path("src/evaluate.py").write_text(EVALUATE)
    here = str(Path("src/evaluate.py").absolute())
    run = Run()
    for _ in range(3):
        run.launch(MS).copy(Frame(here, 14, "train"), count=1 << 24, length=4 * MS).host(3 * MS)
    save(run.launch(MS).done(), Path("run.slt"))
    _, out, _ = told(capsys, "run.slt", "src", "--output-format", "json")
    (stall,) = json.loads(out)["stalls"]
    assert stall["kind"] == "let pass"
    rate = "it uploads pageable memory, at 3.91 GiB/s"
    assert stall["reason"].endswith(f"; {rate}: behind an asynchronous copy of pinned memory the host goes on at once")


@pytest.mark.parametrize(("freed", "kind"), [(1, "growth"), (3, "unmodelled call")])
def test_an_allocator_that_grows(capsys: pytest.CaptureFixture[str], freed: int, kind: str) -> None:
    """It asks the driver more than twice as often as it returns memory; else each round may do so."""
    frame = Frame(str(Path("src/train.py").absolute()), CLIP, "train")
    run = Run()
    for number in range(4):
        run.launch(MS).host(5 * MS).wait(frame, name="cudaMalloc", operator="")
        run.trace.calls[-1].end += 2 * MS
        run.now += 2 * MS
        if number < freed:
            run.wait(frame, name="cudaFree", operator="")
    save(run.launch(MS).done(), Path("run.slt"))
    _, out, _ = told(capsys, "run.slt", "src", "--select", "SL020", "--output-format", "json")
    stalls = {stall["cost"]["lines"][0]: (stall["kind"], stall["reason"]) for stall in json.loads(out)["stalls"]}
    assert stalls[CLIP][0] == kind
    if kind == "growth":
        assert "4 times in this run, and memory was returned 1 times" in stalls[CLIP][1]


def test_reasons_are_looked_up_for_the_dearest(capsys: pytest.CaptureFixture[str]) -> None:
    recorded()
    _, out, _ = told(capsys, "run.slt", "src", "--ignore", "SL020", "--top", "1", "--output-format", "json")
    assert [stall["kind"] for stall in json.loads(out)["stalls"]] == ["rule is off", "not looked up"]


def test_several_formats_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    recorded()
    formats = [word for format in ("json", "sarif", "html", "markdown") for word in ("--output-format", f"{format}:out.{format}")]
    _, out, _ = told(capsys, "run.slt", "src", "--output-format", "full", *formats)
    assert out.startswith("run.slt: ")
    assert Path("out.html").read_text().startswith("<!doctype html>")
    assert json.loads(Path("out.sarif").read_text())["version"] == "2.1.0"
    assert Path("out.markdown").read_text().startswith("## streamlint trace: ")
    told(capsys, "run.slt", "src", "--output-format", "json", "-o", "all.json")
    assert Path("all.json").read_text() == Path("out.json").read_text()


BAD = [
    ((), "streamlint trace: which recording? Name one, or record a program: streamlint trace --run train.py"),
    (("gone.slt", "src"), "streamlint: gone.slt does not exist"),
    (("text.json", "src"), "streamlint: text.json "),
    (("run.slt", "gone"), "streamlint: gone: no such file or folder"),
    (("run.slt", "src", "--threshold", "much"), "streamlint trace: argument --threshold: 'much' is neither a share nor a time"),
    (("run.slt", "src", "--output-format", "junit"), "streamlint: unknown output format 'junit'"),
    (("run.slt", "src", "--select", "SL999"), "streamlint: command line: unknown rule 'SL999'"),
    (("-m", "train", "run.slt"), "streamlint trace: -m needs --run"),
    (("--root", "src", "run.slt"), "streamlint trace: --root needs --run: of a recording that is there, name the code behind it"),
    (("--run",), "streamlint trace: which program? Name a script, or a module with -m"),
    (("--run", "gone.py"), "streamlint: gone.py: no such file"),
    (("--run", "src/train.py", "-o", "a.html"), "streamlint trace: with --run, -o names the recording"),
]


@pytest.mark.parametrize(("words", "message"), BAD, ids=[" ".join(words) or "nothing" for words, _ in BAD])
def test_bad_input(capsys: pytest.CaptureFixture[str], words: tuple[str, ...], message: str) -> None:
    recorded()
    Path("text.json").write_text("no recording")
    code, out, err = told(capsys, *words)
    assert (code, out) == (2, "")
    assert err.splitlines()[-1].startswith(message)


def test_a_recording_of_another_folder_is_matched_where_there_are_findings(capsys: pytest.CaptureFixture[str]) -> None:
    recorded(file="/elsewhere/code/train.py")
    code, out, _ = told(capsys, "run.slt", "src", "--select", "SL020")
    assert code == 1
    assert "src/train.py:12 in train" in out
    assert "NOT REACHED" not in out


def test_a_recording_of_another_program(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is attributed, and that is said; it is no failure."""
    recorded(file="/elsewhere/other.py")
    code, out, _ = told(capsys, "run.slt", "src", "--select", "SL020")
    assert code == 0
    assert "NOT REACHED  src/train.py:12  SL020 hidden-sync-in-hot-loop: its function is not in the recording" in out
    assert out.count("no finding: the file is not among the linted ones") == 2


def test_run_records_first(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def record(program: list[str], output: Path, *, root: str, session: Session, share: str) -> int:
        asked.append((list(program), str(output), root, share))
        recorded(path=str(output), session=session.id)
        return 3

    monkeypatch.setattr(command, "record_run", record)
    code, out, err = told(capsys, "--run", "-o", "mine.slt", "src/train.py", "src", "--", "--epochs", "1", "--run")
    assert (code, asked.pop()) == (1, (["src/train.py", "--epochs", "1", "--run"], "mine.slt", "", ""))
    assert out.startswith("mine.slt: ")
    assert "warning: src/train.py ended with exit code 3; what it did before is reported\n" in err
    told(capsys, "--run", "-m", "package.train", "--root", "src", "--share", "25%", "src", "--", "-v")
    assert asked.pop() == (["-m", "package.train", "-v"], "run.slt", "src", "25%")


def test_run_does_not_tell_of_another_run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process records into the file meanwhile: it grows, and is not of the run that was asked for."""

    def record(program: list[str], output: Path, *, root: str, session: Session, share: str) -> int:
        recorded(path=str(output), session="another")
        return 0

    monkeypatch.setattr(command, "record_run", record)
    code, out, err = told(capsys, "--run", "src/train.py", "src")
    assert (code, out, err) == (2, "", "streamlint: nothing was recorded: src/train.py ended with exit code 0\n")


def test_run_does_not_tell_of_an_earlier_recording(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    recorded()
    monkeypatch.setattr(command, "record_run", lambda program, output, root, session, share: 2)
    code, out, err = told(capsys, "--run", "src/train.py", "src")
    assert (code, out, err) == (2, "", "streamlint: nothing was recorded: src/train.py ended with exit code 2\n")


def test_run_without_a_gpu(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def record(program: list[str], output: Path, *, root: str, session: Session, share: str) -> int:
        raise StreamlintError("no GPU")

    monkeypatch.setattr(command, "record_run", record)
    assert told(capsys, "--run", "src/train.py", "src") == (2, "", "streamlint: no GPU\n")


# Several ranks ----------------------------------------------------------------------------------------------------------------

RANKS = """\
run.slt: 119 ms on NVIDIA H100 80GB HBM3, 2 processes; the GPU was idle for 98.0 ms (41 %), the host
  was blocked for 120 ms
the GPU of rank 0 waited 90.0 ms for rank 1 in 10 collectives; the GPU of rank 1 worked for 10.0 ms
  of it, and had no work for 80.0 ms

"""
WAITED = """\
    cudaStreamSynchronize; without the wait about 9.01 ms shorter (estimate); blocked in rank 0 for
      110 ms, 90.0 ms of it because rank 1 came later, in rank 1 for 10.0 ms
"""


def ranks() -> None:
    """Ten steps of 12 ms: a kernel of 1 ms, an all-reduce that the second rank is late for by 9 ms, and a wait in line 12."""
    for rank, path in enumerate(("run.slt", "run.slt.200")):
        run = Run(process=100 + 100 * rank)
        run.trace.ranks = {run.process: rank}
        for step in range(10):
            late = step * 12 * MS + 10 * MS
            run.now = max(run.now, step * 12 * MS)
            run.launch((1 + rank) * MS)
            run.host(late - run.now if rank else 0)
            begun = max(run.free, run.now + 5_000)
            run.launch(late + 5_000 + MS - begun, "ncclDevKernel_AllReduce_Sum_f32_RING_LL")
            run.wait(Frame(str(Path("src/train.py").absolute()), ITEM, "train"))
        save(run.done(), Path(path), "a")


def test_ranks_of_a_run_are_told_in_one_table(capsys: pytest.CaptureFixture[str]) -> None:
    import jsonschema

    from streamlint.commands import schema

    ranks()
    code, out, _ = told(capsys, "run.slt", "src", "--select", "SL020", "--output-format", "full", "--output-format", "json:out.json")
    assert (code, out[: len(RANKS)]) == (1, RANKS)
    assert WAITED in out
    answer = json.loads(Path("out.json").read_text())
    jsonschema.validate(answer, schema.trace())
    (known,) = (finding["run"]["cost"] for finding in answer["findings"])
    assert [(one["rank"], round(one["other_ranks_ns"] / MS)) for one in known["ranks"]] == [(0, 90), (1, 0)]
    assert [(one["rank"], one["late"]["rank"], one["collectives"]) for one in answer["run"]["rank_waits"]] == [(0, 1, 10)]
    told(
        capsys,
        "run.slt",
        "src",
        "--ignore",
        "SL020",
        *(f"--output-format={format}:out.{format}" for format in ("json", "markdown", "html")),
    )
    for format in ("markdown", "html"):
        page = Path(f"out.{format}").read_text()
        assert "blocked in rank 0 for 110 ms, 90.0 ms of it because rank 1 came later, in rank 1 for 10.0 ms" in page
        assert "the GPU of rank 0 waited 90.0 ms for rank 1 in 10 collectives" in page
    (stall,) = json.loads(Path("out.json").read_text())["stalls"]
    assert (stall["kind"], stall["cost"]["lines"]) == ("other rank", [ITEM])


# check --profile --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def profile(capsys: pytest.CaptureFixture[str]) -> str:
    recorded()
    told(capsys, "run.slt", "src", "--select", "SL020,SL006", "--output-format", "json:trace.json", "-q")
    return "trace.json"


def checked(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = cli.main(["check", "src", "--select", "SL020,SL006", *words])
    out, err = capsys.readouterr()
    return code, out, err


def test_check_shows_what_findings_cost(capsys: pytest.CaptureFixture[str], profile: str) -> None:
    """Lines above may come in between: the finding is known by its content."""
    Path("src/train.py").write_text("# one more line\n" + TRAIN)
    code, out, _ = checked(capsys, "--profile", profile)
    assert code == 1
    assert " = cost: 10.0 ms (16 % of the run); the host was blocked for 10.0 ms in 10\n" in out
    assert "   = cost: RACED ONLY: a race costs no time that could be shown\n" in out


def test_check_sorts_by_cost(capsys: pytest.CaptureFixture[str], profile: str) -> None:
    Path("src/a.py").write_text(TRAIN[TRAIN.index("def evaluate") :].join(("import torch\n\n\n", "")))
    for format in ("json", "sarif"):
        codes = []
        for words in ((), ("--profile", profile)):
            data = json.loads(checked(capsys, "--output-format", format, *words)[1])
            rows = data if format == "json" else data["runs"][0]["results"]
            codes.append([row["code" if format == "json" else "ruleId"] for row in rows])
            known = [row.get("run") or row.get("properties", {}).get("run") for row in rows]
            assert any(known) == bool(words)
        assert codes[0][0] == "SL006"
        assert codes[1][0] == "SL020"


def test_what_check_writes_with_a_profile_fits_the_schema(capsys: pytest.CaptureFixture[str], profile: str) -> None:
    import jsonschema

    from streamlint.commands import schema

    rows = json.loads(checked(capsys, "--output-format", "json", "--profile", profile)[1])
    jsonschema.validate(rows, schema.findings())


def test_a_finding_of_a_rule_that_was_off_has_the_cost_of_its_line(capsys: pytest.CaptureFixture[str]) -> None:
    recorded()
    told(capsys, "run.slt", "src", "--ignore", "SL020", "--output-format", "json:trace.json", "-q")
    assert "= cost: 10.0 ms (16 % of the run)" in checked(capsys, "--profile", "trace.json")[1]


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"findings": [{}], "stalls": []}', '{"findings": [], "stalls": [{"cost": {"lines": 3}}]}']
)
def test_a_profile_that_is_none(capsys: pytest.CaptureFixture[str], text: str) -> None:
    Path("p.json").write_text(text)
    code, out, err = checked(capsys, "--profile", "p.json")
    assert (code, out) == (2, "")
    assert err == (
        "streamlint: p.json is no answer of `streamlint trace`: write one with `streamlint trace RECORDING --output-format json:p.json`\n"
    )


def test_no_profile(capsys: pytest.CaptureFixture[str]) -> None:
    assert checked(capsys, "--profile", "gone.json")[0] == 2

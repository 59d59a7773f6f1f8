"""An answer that all formats show: two findings that cost something, a stall without one, and one finding of each other standing."""

from __future__ import annotations

from pathlib import Path

from fake_runs import MS, Run

from streamlint.findings import Category, Finding, Report, Span, Step
from streamlint.trace.analysis import costs_of
from streamlint.trace.join import Seen, join
from streamlint.trace.model import Frame, Trace
from streamlint.trace.names import Names
from streamlint.trace.rendering import View

SOURCE = """\
def train(loader):
    for images in loader:
        images = images.to(device)
        loss = model(images).mean()
        loss.backward()
        clip(parameters, 1.0)
        log(loss)
        total += loss.item()  # <b>


def log(loss):
    torch.cuda.synchronize()
"""


def finding(row: int, code: str, name: str, category: Category = Category.STALL, function: str = "train") -> Finding:
    span = Span("train.py", row, 9, row, 13)
    trail = (Step("each round", Span("train.py", 2, 5, 2, 25)),)
    facts = {"api": "torch"}
    return Finding(
        code,
        name,
        category,
        "the host waits <here>",
        span,
        trail,
        "do it less",
        facts=facts,
        qualname=function,
        fingerprint=f"f{row}{code}",
    )


FINDINGS = (
    finding(8, "SL020", "hidden-sync-in-hot-loop"),
    finding(3, "SL001", "unpinned-non-blocking"),
    finding(12, "SL021", "device-sync-in-hot-loop", function="log"),
    finding(12, "SL010", "pageable-d2h-stall", function="evaluate"),
    finding(4, "SL006", "cross-stream-use-without-wait", Category.RACE),
)


def line(row: int, function: str = "train") -> Frame:
    return Frame("train.py", row, function)


def trace(rounds: int = 10, kernels: int = 10) -> Trace:
    """The run: in each round an upload, kernels, a wait in line 6 and one in line 8, behind which the host is slow."""
    run = Run()
    for _ in range(rounds):
        run.copy(line(3), count=1 << 20, length=40_000)
        for _ in range(kernels):
            run.launch(200_000)
        run.wait(line(6), operator="aten::is_nonzero").host(MS)
        run.launch(100_000).wait(line(8)).host(3 * MS)
    return run.done()


def view(folder: Path, recorded: Trace | None = None, **more: object) -> View:
    """The answer; the source is written into the folder, which is the current one."""
    (folder / "train.py").write_text(SOURCE)
    recorded = recorded or trace()
    names = Names(["train.py"])
    report = Report(findings=list(FINDINGS), texts={"train.py": SOURCE}, linted=["train.py"])
    joined = join(costs_of(recorded, names), FINDINGS, Seen.of(recorded, names), report.texts)
    for one in joined.unnamed:
        one.kind, one.reason = "no rule", "no rule reports <this>"
    joined.costs.notes.append("half of it could not be read")
    return View(joined, recorded, report, "run.slt", names, report.texts, **more)  # type: ignore[arg-type]

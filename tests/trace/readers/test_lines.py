"""Which lines calls are put on: programs are played with their exact lines beside (see `fake_kineto`)."""

from __future__ import annotations

from pathlib import Path

import fake_kineto
import pytest
from fake_kineto import PROCESS, span

from streamlint.trace.model import Frame, Trace
from streamlint.trace.readers.opening import read

TRAINING = """\
class Net(Module):
    def __init__(self):
        self.parts = [Tensor(), Tensor()]

    def forward(self, x):
        y = x + self.parts[0]
        if y > 3:
            y = y.mean()
        return y[y > 2]


class Meter:
    def update(self, value):
        self.total = float(value)

    @property
    def average(self):
        return self.shown.item()


@no_grad()
def validate(net, batches):
    total = 0.0
    for x in batches:
        x = x.to("cuda")
        out = net(x)
        total += out.item()
        wrong = out[out > 1].tolist()
    return total


def step(net, x, optimizer, meter, number):
    x = x.to("cuda")
    loss = net(
        x,
    ).mean()
    if not loss > 4:
        return None
    loss.backward()
    norm = clip_grad_norm_(net.parts, 1.0)
    optimizer.step()
    meter.update(loss)
    if number % 3 == 0:
        print(f"{loss:.3f} {norm}", end="")
        kept = (loss.item(), norm.item())
        meter.update(norm)
    return loss


def train(net, batches, log):
    optimizer, meter = Optimizer(), Meter()
    meter.shown = Tensor()
    for number, x in enumerate(batches):
        loss = step(net, x, optimizer, meter, number)
        if number % 2:
            log.append(loss.item())
        log.append(meter.average)
    log.append(loss.item())
    values = [x.item() for x in batches]
    total = sum(x.cpu().item() for x in batches)
    for row in loss:
        log.append(float(row))
    batches[0][1] = 4
    return max(batches), loss.tolist()


def main():
    import io
    from contextlib import redirect_stdout
    with redirect_stdout(io.StringIO()):
        log = []
        net = Net()
        batches = [Tensor() for _ in range(4)]
        for epoch in range(2):
            train(net, batches, log)
            validate(net, batches)
            x = batches[0].cpu()
            print(x)
        while Tensor():
            break
        assert Tensor()
"""
BRANCHES = """\
def batches(count):
    for number in range(count):
        x = Tensor()
        if number == 1:
            x = x.cpu()
        yield x.to("cuda")


class Log:
    def __init__(self):
        self.rows = []

    def add(self, **values):
        for name, value in values.items():
            if isinstance(value, Tensor):
                value = value.item()
            self.rows.append(value)


class Model(Module):
    def forward(self, x):
        try:
            if x.nonzero().item() < 0:
                raise ValueError
            return x.mean()
        finally:
            x.item()


def evaluate(model, items, every):
    scores = []
    with no_grad():
        for i, x in enumerate(items):
            y = model(x)
            scores.append(
                y.cpu()
                .item()
            )
            if i % every == 0:
                scores.append(y.item())
                scores.append(y.item())
            elif i % 3 == 1:
                scores.append(y.tolist())
                scores.append(y.item())
            else:
                scores.append(y.item())
    pick = lambda t: t.item() if t > 3 else 0.0
    for s in items:
        pick(s)
    best = max(items, key=lambda t: float(t))
    return scores[0] and best.item()


def fit(model):
    log = Log()
    step = 0
    while step < 6:
        for x in batches(3):
            loss = model(x)
            loss.backward()
            log.add(loss=loss, lr=1, other=x)
            step += 1
            if step == 4:
                log.add(loss=loss.mean())
                continue
            if step >= 6:
                break
            loss.item()
        else:
            loss.cpu()
    return {k: v.item() for k, v in zip("ab", [Tensor(), Tensor()])}


def main():
    m = Model()
    fit(m)
    items = [Tensor().to("cuda") for _ in range(7)]
    evaluate(m, items, 4)
    a, b = items[0].item(), items[1].item()
    x = items[0]
    x[2] = 1
    y = x[0] + x[1]; z = y.item()
    if z and y > 0 and (x or y):
        x.item()
    c = x.item() if y else y.item()
    def inner():
        return x.cpu().item()
    inner()
    inner()
"""


def played(folder: Path, text: str) -> tuple[Trace, list[int]]:
    """A program's trace, as it is read, and the exact line of each call."""
    program = folder / "train.py"
    program.write_text(text)
    recorder = fake_kineto.run(program)
    (folder / "run.json").write_text(fake_kineto.document(recorder.events))
    return read(folder / "run.json", [folder]), recorder.truth


@pytest.mark.parametrize("text", [TRAINING, BRANCHES], ids=["training", "branches"])
def test_each_call_is_put_on_its_one_line(tmp_path: Path, text: str) -> None:
    trace, truth = played(tmp_path, text)
    assert trace.notes == []
    assert [trace.frames(call)[0].line for call in trace.calls] == truth
    assert {frame.lines for stack in trace.stacks for frame in stack} == {()}
    assert len(truth) > 250


def test_callers_are_put_on_their_lines_as_well(tmp_path: Path) -> None:
    trace, _ = played(tmp_path, "def low(t):\n    return t.item()\n\n\ndef main():\n    low(Tensor())\n    low(Tensor())\n")
    file = str(tmp_path / "train.py")
    low = Frame(file, 2, "low", 1)
    assert trace.stacks == [(), (low, Frame(file, 6, "main", 5)), (low, Frame(file, 7, "main", 5))]


def test_callers_of_generators_and_of_wrapped_functions_are_found(tmp_path: Path) -> None:
    text = (
        "def batches(n):\n    for _ in range(n):\n        yield Tensor().cpu()\n\n\n"
        "@no_grad()\ndef check(x):\n    return x.item()\n\n\n"
        "def main():\n    made = batches(2)\n    for x in made:\n        x.clone_of = x\n        check(x)\n"
        "    for i, x in enumerate(batches(1)):\n        check(x)\n"
    )
    trace, _ = played(tmp_path, text)
    lines = [tuple(frame.line for frame in trace.frames(call)) for call in trace.calls]
    assert lines == [(3, 13), (3, 13), (8, 15), (8, 15)] * 2 + [(3, 16), (3, 16), (8, 17), (8, 17)]


def test_functions_have_qualified_names(tmp_path: Path) -> None:
    text = "class Meter:\n    def add(self, t):\n        def inner():\n            return t.item()\n        return inner()\n\n\n"
    trace, _ = played(tmp_path, text + "def main():\n    Meter().add(Tensor())\n")
    assert [frame.function for frame in trace.stacks[1]] == ["Meter.add.<locals>.inner", "Meter.add", "main"]


def test_where_several_lines_fit_all_are_told(tmp_path: Path) -> None:
    text = (
        "def main(flag=True, x=Tensor()):\n    if flag:\n        x.item()\n    if not flag:\n        x.item()\n    x.cpu()\n    x.item()\n"
    )
    trace, truth = played(tmp_path, text)
    told = [(frame.line, frame.lines) for call in trace.calls for frame in trace.frames(call)]
    assert told == [(3, (3, 5))] * 2 + [(6, ())] * 2 + [(7, ())] * 2
    assert truth == [3, 3, 6, 6, 7, 7]


def test_a_function_that_is_not_in_the_source_has_no_line(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text("def main(x=Tensor()):\n    x.item()\n")
    events = fake_kineto.run(program).events
    program.write_text("def other():\n    pass\n")
    (tmp_path / "run.json").write_text(fake_kineto.document(events))
    trace = read(tmp_path / "run.json", [tmp_path])
    assert trace.stacks[1] == (Frame(str(program), 0, "main", 1),)
    assert trace.notes == [f"{program} was changed after the recording: its functions begin on other lines"]


def test_what_runs_in_between_takes_no_place(tmp_path: Path) -> None:
    """A callback of the garbage collector comes at any time: in an operator, or between two events."""
    (tmp_path / "train.py").write_text("def main(model, x):\n    x.item()\n    model(x)\n    y = x + 1\n    x.item()\n")
    item, callback = "<built-in method item of Tensor object at 0x1>", "weakref.py(105): remove"
    events = [
        span("python_function", "train.py(1): main", 0, 2000),
        span("python_function", callback, 10, 5),
        span("python_function", item, 20, 20),
        span("cuda_runtime", "cudaStreamSynchronize", 25, 5),
        span("python_function", "nn.Module: Net_0", 50, 20),
        span("cpu_op", "aten::add", 80, 40),
        span("python_function", callback, 85, 5),
        span("cuda_runtime", "cudaMalloc", 86, 2),
        span("cuda_runtime", "cudaLaunchKernel", 100, 5),
        span("python_function", callback, 130, 5),
        span("python_function", item, 140, 20),
        span("cuda_runtime", "cudaStreamSynchronize", 145, 5),
    ]
    (tmp_path / "run.json").write_text(fake_kineto.document(events))
    trace = read(tmp_path / "run.json", [tmp_path])
    assert [trace.frames(call)[0].line for call in trace.calls] == [2, 4, 4, 5]


BACKWARD = "def main(loss):\n    loss.item()\n    loss.backward()\n    loss.item()\n"


def backward(folder: Path, operator: str) -> Trace:
    """A trace in which a second thread calls CUDA while the main thread is in `backward`."""
    (folder / "train.py").write_text(BACKWARD)
    events = [
        span("python_function", "train.py(1): main", 1000, 900),
        span("python_function", "<built-in method item of Tensor object at 0x1>", 1010, 50),
        span("cuda_runtime", "cudaStreamSynchronize", 1020, 10, correlation=1),
        span("python_function", "torch/_tensor.py(500): backward", 1100, 500),
        span("python_function", "<built-in method run_backward of torch._C._EngineBase object at 0x2>", 1110, 480),
        span("cpu_op", operator, 1200, 100, thread=77),
        span("cpu_op", "aten::item", 1210, 80, thread=77),
        span("cuda_runtime", "cudaStreamSynchronize", 1220, 10, thread=77, correlation=2),
        span("python_function", "<built-in method item of Tensor object at 0x1>", 1700, 50),
        span("cuda_runtime", "cudaStreamSynchronize", 1710, 10, correlation=3),
    ]
    (folder / "run.json").write_text(fake_kineto.document(events))
    return read(folder / "run.json", [folder])


def test_calls_of_autograds_threads_belong_to_backward(tmp_path: Path) -> None:
    trace = backward(tmp_path, "autograd::engine::evaluate_function: MulBackward0")
    assert [(call.thread, trace.frames(call)[0].line, call.operator) for call in trace.calls] == [
        (PROCESS, 2, ""),
        (77, 3, "aten::item"),
        (PROCESS, 4, ""),
    ]


def test_other_threads_are_not_taken_for_autograds(tmp_path: Path) -> None:
    trace = backward(tmp_path, "aten::to")
    assert [len(trace.frames(call)) for call in trace.calls] == [1, 0, 1]


SUFFIXES = [
    ("/home/other/work/pkg/deep/train.py", True),  # another machine
    ("deep/train.py", True),  # cut off by PyTorch
    ("train.py", True),
    ("other/train.py", False),
    ("/usr/lib/python3/site-packages/deep/train.py", False),
]


@pytest.mark.parametrize(("recorded", "is_user"), SUFFIXES)
def test_paths_are_matched_by_their_ends(tmp_path: Path, recorded: str, is_user: bool) -> None:
    (tmp_path / "deep").mkdir()
    program = tmp_path / "deep" / "train.py"
    program.write_text("def main(x):\n    x.item()\n")
    (tmp_path / "site-packages" / "deep").mkdir(parents=True)
    (tmp_path / "site-packages" / "deep" / "train.py").write_text("def main(x):\n    x.item()\n")
    events = [span("python_function", f"{recorded}(1): main", 0, 90), span("cuda_runtime", "cudaDeviceSynchronize", 10, 5)]
    events.insert(1, span("python_function", "<built-in method item of Tensor object at 0x1>", 5, 50))
    (tmp_path / "run.json").write_text(fake_kineto.document(events))
    trace = read(tmp_path / "run.json", [tmp_path])
    assert trace.stacks[1:] == ([(Frame(str(program), 2, "main", 1),)] if is_user else [])


def test_a_file_of_the_same_name_needs_a_function_on_the_recorded_line(tmp_path: Path) -> None:
    (tmp_path / "utils.py").write_text("def mine():\n    pass\n")
    events = [span("python_function", "utils.py(40): theirs", 0, 90), span("cuda_runtime", "cudaDeviceSynchronize", 10, 5)]
    (tmp_path / "run.json").write_text(fake_kineto.document(events))
    trace = read(tmp_path / "run.json", [tmp_path])
    assert trace.stacks == [()]
    assert trace.notes == [f"no call was made from a file under {tmp_path}: is this the trace of another program?"]

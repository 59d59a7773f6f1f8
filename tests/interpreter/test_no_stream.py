"""Words of streams that bring none into play, and what may be one."""

from __future__ import annotations

import pytest

from streamlint import models
from streamlint.frontends.python import lower
from streamlint.interpreter.index import Program
from streamlint.interpreter.inherited import inherited_methods
from streamlint.interpreter.no_stream import gives_current, with_entered, without_current, without_standard, without_text
from streamlint.operations import ENTERED

OWN = """def f(x, stream=None):
    if stream is None:
        stream = cupy.cuda.get_current_stream()
    lib.scale(ctypes.cast(stream.ptr, ctypes.c_void_p), x.data.ptr)
    stream.synchronize()
"""


@pytest.mark.parametrize(
    "text",
    [
        OWN,
        "torch.cuda.current_stream().synchronize()",
        "here = torch.cuda.current_stream(x.device)",
        "side_stream = torch.cuda.current_stream()\nlib.run(side_stream.cuda_stream)\n",
    ],
)
def test_the_current_stream_alone(text: str) -> None:
    assert "tream" not in without_current(text)


@pytest.mark.parametrize(
    "text",
    [
        OWN + "    x.set(y, stream=stream)\n",  # handed on
        OWN + "    stream = pool.pop()\n",
        OWN + "    with stream:\n        x += 1\n",
        OWN + "    self.stream.wait()\n",
        "lib.run(stream.ptr)",  # it may have come from anywhere
        "torch.cuda.current_stream().wait_stream(side)",
        "torch.cuda.current_stream(pick(x))",
        "with torch.cuda.stream(torch.cuda.current_stream()):",
    ],
)
def test_another_stream_may_be_there(text: str) -> None:
    assert "tream" in without_current(text)


def test_what_may_be_given_counts_where_cpp_runs_on_it() -> None:
    assert "tream" in without_current(OWN, calls_cpp=True)
    assert "tream" not in without_current(OWN.replace("stream=None", "y=None"), calls_cpp=True)


@pytest.mark.parametrize(
    ("body", "gives"),
    [
        ("return torch.cuda.current_stream(device)", True),
        ("return self.hpu.current_stream()", True),
        ("return None", True),
        ("...", True),
        ("raise NotImplementedError", True),
        ("return self.side", False),
        ("return torch.cuda.current_stream() if self.side is None else self.side", False),
        ("self.calls += 1\n        return torch.cuda.current_stream()", False),
    ],
)
def test_a_function_at_hand_that_gives_the_current_stream(body: str, gives: bool) -> None:
    text = f"def current_stream(self, device=None):\n        {body}\n"
    assert gives_current(text) is gives
    assert "tream" not in without_current(text) or not gives


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("void f(std::ostream& out, std::vector<std::istringstream> in);", False),
        ("using namespace std; void f(ostream &out) { basic_ifstream<char> in(path); }", False),
        ('TORCH_CHECK(ok, "no stream"); char c = \'"\';', False),
        ('char c = \'"\'; scale<<<grid, block, 0, stream>>>(x, "c");', True),
        ("scale<<<grid, block, 0, ostream>>>(x);", True),
        ("run(ctx.istream, ctx->ostream (x));", True),
        ("cudaStream_t istream;", True),
        ("videostream & x;", True),
    ],
)
def test_the_streams_of_the_standard_library(text: str, left: bool) -> None:
    assert ("tream" in without_standard(text)) is left


def test_the_state_of_pythons_threads_is_no_thread() -> None:
    assert "Thread" not in without_standard("PyThreadState* held = PyEval_SaveThread();")
    assert "Thread" in without_standard("std::vector<Thread> held; PyEval_SaveThread();")


@pytest.mark.parametrize(
    ("head", "enters"),
    [
        ("with lane:", True),
        ("async with self.lane as held:", True),
        ("with lanes[i], open(path) as file:", True),
        ("with lane if lane is not None else nullcontext():", True),
        ("with(\n    open(path) as file,\n    lane,\n):", True),
        ("with open(path) as file:", False),
        ("with solver.range(x[1:2], {'a:': 1}) as (a, b), torch.no_grad():", False),
        ("print('with lane:')", False),
    ],
)
def test_what_is_entered(head: str, enters: bool) -> None:
    text = f"def f(lane):\n    {head}\n        pass\n"
    assert (ENTERED in with_entered(text)) is enters
    assert len(with_entered(text)) == len(text)


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("streamer.put(tokens)", False),
        ("class TextStreamer(BaseStreamer):", False),
        ("self._streaming_avg = None", False),
        ("class Batch(Multistreamable):", False),
        ("from logging import StreamHandler", False),
        ("reader: asyncio.StreamReader", False),
        ("raise ValueError('used downstream, or upstream')", False),
        ("if is_current_stream_capturing():", False),
        ("requests.get(url, stream=True)", False),
        ("def get(url, stream: bool = False):", False),
        ("get(url, stream=side)", True),
        ("streams = make()", True),
        ("self.streaming_stream.wait_stream(side)", True),
        ("torch.cuda.Stream(device)", True),
        ("mid_stream", True),
    ],
)
def test_the_streams_of_text(text: str, left: bool) -> None:
    assert ("tream" in without_text(text).replace("Stream", "stream")) is left
    assert len(without_text(text)) == len(text)


@pytest.mark.parametrize(("said", "count"), [("'it is used downstream'", 0), ("torch.cuda.Stream()", 1)])
def test_methods_are_inherited_from_classes_that_speak_of_streams(said: str, count: int) -> None:
    text = f"""
import torch

class Base:
    def __init__(self):
        self.what = {said}

    def run(self, x):
        return self.shape(x) + 1

    def shape(self, x):
        return x

class Own(Base):
    def shape(self, x):
        return x * 2
"""
    program = Program()
    file = program.add(lower("a.py", text), models.builtin("python"))
    assert [method.name for _, method, _ in inherited_methods(file)] == ["run"] * count

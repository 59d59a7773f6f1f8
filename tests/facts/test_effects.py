"""Effects of functions: what they do by themselves, and what comes over calls of any kind and depth."""

from __future__ import annotations

from pathlib import Path

import pytest
from facts.programs import facts_of, function

from streamlint import cli
from streamlint.facts.files.program import Program, SourceFile
from streamlint.facts.graph.call_graph import CallGraph
from streamlint.facts.graph.facts import Facts
from streamlint.facts.repetition.effects import Effect, Effects, words
from streamlint.frontends import cuda
from streamlint.ir.modules import lower

DO = "import torch\ndef do(x, opt=None):\n    {}\n"


def effects_of(text: str, name: str = "do") -> set[str]:
    facts = facts_of(a=text)
    return set(words(Effects(CallGraph(facts)).of(function(facts, "a", name))))


@pytest.mark.parametrize(
    ("statement", "effects"),
    [
        ("torch.ones(4, device='cuda')", {"allocates on a device"}),
        ("torch.ones(4)", set()),
        ("torch.ones(4).sum()", set()),
        ("torch.ones(4).item()", set()),
        ("torch.ones(4, device='cuda').sum()", {"allocates on a device", "launches work"}),
        ("torch.ones(4, device='cuda').item()", {"allocates on a device", "reads device values on the host"}),
        ("float(torch.ones(4, device='cuda'))", {"allocates on a device", "reads device values on the host"}),
        ("torch.cuda.synchronize()", {"waits on the host"}),
        ("torch.cuda.empty_cache()", {"frees device memory"}),
        ("torch.cuda.Stream()", {"creates or switches streams"}),
        ("torch.cuda.Event().record()", {"records events"}),
        ("torch.cuda.current_stream().wait_stream(torch.cuda.Stream())", {"creates or switches streams", "has a stream wait"}),
        ("import threading; threading.Thread(target=print).start()", {"starts threads"}),
        ("x.backward()", {"launches work", "runs a backward pass"}),
        ("opt.step(); opt.zero_grad()", {"steps an optimizer"}),
        ("x.item()", {"reads device values on the host"}),
        ("x.cuda()", {"copies"}),
        ("x.items()", set()),
        ("opt.step()", set()),
        ("print(1)", set()),
    ],
)
def test_what_a_function_does(statement: str, effects: set[str]) -> None:
    assert effects_of(DO.format(statement)) == effects


@pytest.mark.parametrize(
    "text",
    [
        "def do(x):\n    x.backward()\n    x.item()\n",  # nobody near uses a library
        "import torch\nclass Layer:\n    def backward(self): pass\n    def item(self): pass\ndef do():\n    Layer().backward()\n",
        "import torch\nclass Layer:\n    def item(self): pass\ndef do(x):\n    x.item()\n",  # it may be a layer as well
    ],
)
def test_a_name_is_not_enough(text: str) -> None:
    assert effects_of(text) == set()


WAYS = {
    "function": ("from b import wait\n", "wait()"),
    "keyword": ("from b import through\n", "through(f=through)"),
    "module": ("import b\n", "b.wait()"),
    "method": ("from b import Base\n", "Base().run()"),
    "override": ("from b import Sub\n", "Sub().start()"),
    "attribute": ("from b import Held\n", "Held().go()"),
    "partial": ("from functools import partial\nfrom b import wait\n", "partial(wait)()"),
    "table": ("from b import wait\nTABLE = {'w': wait}\n", "TABLE['w']()"),
    "lambda": ("from b import wait\n", "(lambda: wait())()"),
    "property": ("from b import Held\n", "Held().ready"),
    "with": ("from b import Scope\n", "with Scope(): pass"),
    "generator": ("from b import each\n", "[one for one in each()]"),
    "library": ("from b import wait\nimport torch\n", "torch.func.vmap(wait)"),
}
LIBRARY = """
import torch
def wait(): torch.cuda.synchronize()
def through(f): wait()
class Base:
    def run(self): wait()
    def start(self): self.hook()
    def hook(self): pass
class Sub(Base):
    def hook(self): self.run()
class Held:
    def __init__(self): self.f = wait
    def go(self): self.f()
    @property
    def ready(self): return wait()
class Scope:
    def __enter__(self): return self
    def __exit__(self, *error): wait()
def each():
    yield 1
    wait()
"""


@pytest.mark.parametrize("way", WAYS)
def test_effects_come_over_calls(way: str) -> None:
    head, call = WAYS[way]
    facts = facts_of(a=f"{head}def do():\n    {call}\n", b=LIBRARY)
    effects = Effects(CallGraph(facts))
    do = function(facts, "a", "do")
    assert Effect.SYNCHRONIZES in effects.of(do)
    assert effects.chain(do, Effect.SYNCHRONIZES)[-1][2] == "torch.cuda.synchronize"


CPP = """
#include <cuda_runtime.h>
__global__ void scale(float* x) { x[0] = 1; }
struct Buffer {
  float* p;
  Buffer(int n) { cudaMalloc(&p, n); }
  ~Buffer() { cudaFree(p); }
  void fill(cudaStream_t s) { scale<<<1, 1, 0, s>>>(p); }
};
void run(int n, cudaStream_t s) {
  Buffer b(n);
  b.fill(s);
}
"""


def test_constructors_destructors_and_launches_of_cpp() -> None:
    source = SourceFile("a.cu", "cuda", CPP, lambda: lower(cuda.lower("a.cu", CPP)))
    facts = Facts(Program([source]))
    run = next(one for one in facts.program.units["a.cu"].functions if one.name == "run")
    found = Effects(CallGraph(facts)).of(run)
    assert words(found) == ["launches work", "allocates on a device", "frees device memory"]


def test_what_a_thread_does_is_not_done_by_who_starts_it() -> None:
    text = "import threading, torch\ndef work(): torch.cuda.synchronize()\ndef do(): threading.Thread(target=work).start()\n"
    assert effects_of(text) == {"starts threads"}


def test_functions_that_call_each_other_have_the_same_effects() -> None:
    text = "import torch\ndef do(n): other(n)\ndef other(n):\n    do(n - 1)\n    last()\ndef last(): torch.cuda.synchronize()\n"
    assert effects_of(text) == effects_of(text, "other") == {"waits on the host"}


def test_an_optimizer_is_known_by_what_is_done_with_it_elsewhere() -> None:
    class_ = (
        "class T:\n    def __init__(self, opt): self.opt = opt\n    def a(self): self.opt.zero_grad()\n    def do(self): apply(self.opt)\n"
    )
    text = f"import torch\ndef apply(it): it.step()\n{class_}"
    assert effects_of(text, "T.do") == {"steps an optimizer"}
    assert effects_of(text.replace("zero_grad", "reset"), "T.do") == set()


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.py").write_text("from b import wait\ndef do():\n    wait()\n")
    Path("b.py").write_text("import torch\ndef wait(): torch.cuda.synchronize()\n")
    assert cli.main(["debug", "effects", "a.py:do", "--root", "."]) == 0
    assert capsys.readouterr().out == "do:\n  waits on the host: wait (a.py:3), torch.cuda.synchronize (b.py:2)\n"
    assert cli.main(["debug", "effects", "a.py:nobody", "--root", "."]) == 2


def test_what_leads_to_an_effect_is_found_over_callers() -> None:
    facts = facts_of(
        a="""
import torch

def step(opt):
    opt.step()
    opt.zero_grad()

def train(opt, fetch):
    step(opt)
    fetch()

def scoped(x):
    with torch.cuda.stream(torch.cuda.Stream()):
        return inner(x)

def inner(x):
    return x + 1

def around(x):
    return scoped(x)
"""
    )
    effects = Effects(CallGraph(facts))

    def leading(effect: Effect) -> set[str]:
        return {one.code.name for one in effects.leading(effect)}

    assert leading(Effect.OPTIMIZER) == {"step", "train"}
    assert leading(Effect.STREAMS) == {"scoped", "around"}
    assert leading(Effect.BACKWARD) == set()


def test_whether_a_function_leads_to_an_effect_is_asked_of_its_callees() -> None:
    facts = facts_of(
        a="""
import torch

class Layer:
    def __init__(self):
        self.weight = torch.ones(4, device="cuda")

    def __call__(self, x):
        return self.weight.sum() if x else again(self, x)

def again(layer, x):
    return layer(x)

def run():
    return again(Layer(), 2)

def count(names, rest):
    return len(names) + (count(rest, []) if rest else 0)

def later():
    return run

def train(loss):
    loss.backward()
"""
    )
    effects = Effects(CallGraph(facts))

    def leads(name: str, effect: Effect = Effect.LAUNCHES) -> bool:
        return effects.leads(function(facts, "a", name), effect)

    assert [leads(name) for name in ("run", "again", "count", "later")] == [True, True, False, False]
    assert [leads(name) for name in ("again", "run", "count", "later")] == [True, True, False, False]
    assert leads("train", Effect.BACKWARD)
    assert not leads("run", Effect.BACKWARD)

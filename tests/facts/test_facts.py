"""Program facts: what parameters, attributes and calls may hold over the whole program, and through which call it came."""

from __future__ import annotations

from pathlib import Path

import pytest
from facts.programs import facts_of, function

from streamlint import cli
from streamlint.facts.code.objects import Memory
from streamlint.facts.graph.facts import Facts, describe
from streamlint.ir import opcodes as op

PAGEABLE, PINNED = "torch.Tensor in pageable host memory", "torch.Tensor in pinned host memory"
OUTSIDE = "unknown (caller)"
MAKE = "import torch\nfrom b import *\n\ndef main():\n    x = torch.zeros(4)\n    y = torch.zeros(4, pin_memory=True)\n"


def parameter(facts: Facts, file: str, name: str, index: int) -> set[str]:
    """What a parameter may be, in words."""
    return {" ".join(describe(value)) for value in facts.argument(function(facts, file, name), index).values}


@pytest.mark.parametrize(
    "decorator",
    [
        "def _d(f):\n    def inner(*a, **k): return f(*a, **k)\n    return inner",
        "def _d(f):\n    def inner(self, *a, **k): return f(self, *a, **k)\n    return inner",
        "class _d:\n    def __new__(cls, f):\n        def inner(*a, **k): return f(*a, **k)\n        return inner",
    ],
)
def test_a_decorated_method_is_given_its_receiver_and_the_arguments(decorator: str) -> None:
    owner = "class Owner:\n    @_d\n    def f(self, t): pass\n"
    calls = "    Owner().f(x)\n    Owner().f(y)"
    facts = facts_of(a=MAKE + calls, b=f"{decorator}\n{owner}")
    assert parameter(facts, "b", "Owner.f", 1) == {PAGEABLE, PINNED, OUTSIDE}
    assert parameter(facts, "b", "Owner.f", 0) == {"object of Owner or a subclass"}


@pytest.mark.parametrize(
    ("callee", "calls"),
    [
        ("def _f(t): pass", "    _f(x)\n    _f(y)"),
        ("def _f(t): pass", "    _f(t=x)\n    _f(**{'t': y})"),
        ("def _g(t): pass\ndef _f(*given): _g(*given)", "    _f(x)\n    _f(y)"),
        ("def _g(t): pass\n_f = lambda u: _g(u)", "    _f(x)\n    _f(y)"),
        ("import functools\ndef _g(t): pass\n_f = functools.partial(_g)", "    _f(x)\n    _f(y)"),
        ("def _g(t): pass\n_t = {'a': _g}\ndef _f(u): _t['a'](u)", "    _f(x)\n    _f(y)"),
        (
            "def _d(f):\n    def inner(*a, **k): return f(*a, **k)\n    return inner\n@_d\ndef _g(t): pass\ndef _f(u): _g(u)",
            "    _f(x)\n    _f(y)",
        ),
        ("def _g(t): pass\ndef _h(u): yield u\ndef _f(u):\n    for v in _h(u): _g(v)", "    _f(x)\n    _f(y)"),
    ],
)
def test_a_parameter_holds_what_all_callers_give(callee: str, calls: str) -> None:
    facts = facts_of(a=MAKE.replace("*", "_f") + calls + "\n", b=callee + "\n")
    name = "_g" if "_g" in callee else "_f"
    assert parameter(facts, "b", name, 0) == {PAGEABLE, PINNED}


def test_a_function_that_others_may_call_is_given_more() -> None:
    facts = facts_of(a=MAKE.replace("*", "f") + "    f(x)\n", b="def f(t): pass\n")
    assert parameter(facts, "b", "f", 0) == {PAGEABLE, OUTSIDE}


def test_a_trace_names_the_calls() -> None:
    facts = facts_of(a=MAKE.replace("*", "_f") + "    _f(x)\n", b="def _g(t): pass\ndef _f(u): _g(u)\n")
    node = facts.argument(function(facts, "b", "_g"), 0)
    (value,) = node.values
    assert [str(site) for site in node.trace(value)][-1] == "a.py:5"
    assert "b.py:2" in [str(site) for site in node.trace(value)]


CLASSES = """
class Base:
    def __init__(self, t): self.held = t
    def run(self): return self._send(self.held)
    def _send(self, t): return t
class Sub(Base):
    def _send(self, t): return t
"""


def test_attributes_lead_to_overriding_methods() -> None:
    facts = facts_of(a=MAKE.replace("*", "Base, Sub") + "    Sub(y).run()\n    Base(x).run()\n", b=CLASSES)
    assert parameter(facts, "b", "Sub._send", 1) >= {PINNED}
    assert parameter(facts, "b", "Base._send", 1) >= {PAGEABLE}


def test_a_module_is_called_through_forward() -> None:
    text = "import torch\nclass Net(torch.nn.Module):\n    def forward(self, t): return t\n"
    facts = facts_of(a=MAKE.replace("*", "Net") + "    net = Net()\n    net(x)\n", b=text)
    assert PAGEABLE in parameter(facts, "b", "Net.forward", 1)


def test_a_framework_hands_over_tensors_of_the_device() -> None:
    base = "import lightning\nclass Net(lightning.LightningModule):\n"
    facts = facts_of(a=f"{base}    def training_step(self, data, index): pass\n    def other(self, data): pass\n")
    assert "torch.Tensor in device memory (asked)" in parameter(facts, "a", "Net.training_step", 1)
    assert parameter(facts, "a", "Net.training_step", 2) == parameter(facts, "a", "Net.other", 1) == {OUTSIDE}


def test_a_call_enters_what_a_table_holds() -> None:
    facts = facts_of(a="def f(): pass\ndef g(): pass\nT = {'f': f, 'g': g}\ndef h(name):\n    T[name]()\n")
    caller = function(facts, "a", "h")
    (call,) = caller.by_opcode[op.CALL]
    assert {" ".join(describe(one)) for one in facts.callees(caller, call)} == {"function f", "function g"}


@pytest.mark.parametrize(
    "loop",
    [
        "def f(x):\n    while x: x = x.parent\n    return x\nimport os\nf(os)\n",
        "import functools\ndef f(g, n):\n    for i in range(n): g = functools.partial(g, i)\n    return g\nf(print, 3)\n",
        "def f(x, *rest): return f(1, x, *rest)\nf(2)\n",
        "def f(x):\n    while x: x = x.items()\n    return x\nf({})\n",
        "def f(n): return [f(n), *f(n)]\nf(1)\n",
    ],
)
def test_loops_end(loop: str) -> None:
    facts = facts_of(a=loop)
    for one in facts.program.units["a.py"].functions:
        for index in range(len(one.code.parameters)):
            facts.argument(one, index)
        for opcode in (op.CALL, op.INVOKE):
            for call in one.by_opcode[opcode]:
                facts.callees(one, call)
    assert facts.solver.steps < 20_000


def test_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.py").write_text(MAKE.replace("*", "_f") + "    _f(x)\n")
    Path("b.py").write_text('def _f(t):\n    return t.to("cuda")\n')
    assert cli.main(["debug", "facts", "b.py:2", "--root", "."]) == 0
    assert capsys.readouterr().out.startswith(f"t:\n  {PAGEABLE} from ")
    assert cli.main(["debug", "callers", "b.py:_f", "--root", "."]) == 0
    assert capsys.readouterr().out == "a.py:7\n"
    assert cli.main(["debug", "callees", "a.py:7", "--root", "."]) == 0
    assert capsys.readouterr().out == "function _f\n"
    assert cli.main(["debug", "callers", "b.py:_g", "--root", "."]) == 2
    assert cli.main(["debug", "facts", "missing.py:2"]) == 2


@pytest.mark.parametrize("backwards", [False, True])
def test_what_is_too_much_to_tell_apart_is_joined(backwards: bool) -> None:
    """The answer does not depend on what is asked first."""
    names = [f"C{number}" for number in range(60)]
    classes = "".join(f"class {name}(Base):\n    def run(self): pass\n" for name in names)
    calls = "".join(f"_f({name}(), {name!r}, [{name}])\n" for name in names)
    facts = facts_of(a=f"class Base:\n    def run(self): pass\n{classes}def _f(x, y, z): x.run()\n{calls}")
    for index in (2, 1, 0) if backwards else (0, 1, 2):
        facts.argument(function(facts, "a", "_f"), index)
    assert parameter(facts, "a", "_f", 0) == {"object of Base or a subclass"}
    assert parameter(facts, "a", "_f", 1) == {"number or text"}
    assert parameter(facts, "a", "_f", 2) == {"unknown (budget)"}
    (call,) = function(facts, "a", "_f").by_opcode[op.INVOKE]
    assert {value.method.function.owner for value in facts.callees(function(facts, "a", "_f"), call)} == set(
        facts.program.units["a.py"].classes
    )


def test_a_table_that_makes_what_it_lacks() -> None:
    facts = facts_of(
        a="""
        from collections import defaultdict

        class Gauge:
            def push(self, value):
                return value

        def _fill(rows):
            gauges = defaultdict(Gauge)
            for name, row in rows:
                gauges[name].push(row)
        """
    )
    callers = [arguments.site for _, arguments in facts.callers(function(facts, "a", "Gauge.push"))]
    assert [site.row for site in callers if site is not None] == [11]


def test_a_data_type_moves_nothing() -> None:
    facts = facts_of(
        a="""
        import torch

        def half(n):
            return torch.zeros(n, device="cuda").to(torch.float16)
        """
    )
    found = facts.values(function(facts, "a", "half"), function(facts, "a", "half").by_opcode[op.RETURN][0][2]).values
    assert [value.space for value in found if isinstance(value, Memory)] == ["device"]


def test_cuda_python_gives_the_status_before_what_it_makes() -> None:
    facts = facts_of(
        a="""
        from cuda.bindings import runtime

        def _checked(given):
            if given[0]:
                raise RuntimeError(given[0])
            return given[1]

        def main():
            status, event = runtime.cudaEventCreate()
            _use(status, event, _checked(runtime.cudaStreamCreate()))

        def _use(status, event, stream): pass
        """
    )
    assert parameter(facts, "a", "_use", 0) == {"number or text"}
    assert parameter(facts, "a", "_use", 1) == {"object of cuda.core.Event"}
    assert parameter(facts, "a", "_use", 2) == {"object of cuda.core.Stream"}


@pytest.mark.parametrize(
    ("written", "index", "held"),
    [
        ("x, *rest, y", 0, {PAGEABLE}),
        ("x, *rest, y", 1, {PINNED}),
        ("x, y, *rest", 1, {PINNED}),
        ("x, y, *rest", 2, set()),
    ],
)
def test_what_stands_before_a_spread_list_is_at_its_place(written: str, index: int, held: set[str]) -> None:
    facts = facts_of(a=MAKE + f"    rest = []\n    made = ({written})\n    _f(made[{index}])\n", b="def _f(t): pass")
    assert parameter(facts, "b", "_f", 0) - {OUTSIDE} == held


def test_a_part_of_a_package_is_no_library_of_that_name() -> None:
    files = {
        "agents/__init__": "",
        "agents/torch/__init__": "def zeros(n): return None\n",
        "agents/torch/algorithms/__init__": "",
        "agents/torch/algorithms/one": "import torch\nfrom agents.sink import _f\n_f(torch.zeros(4))\n",
        "agents/sink": "def _f(t): pass\n",
    }
    assert parameter(facts_of(**files), "agents/sink", "_f", 0) == {PAGEABLE}


def test_a_file_beside_a_script_is_meant_by_its_name() -> None:
    files = {
        "study/__init__": "",
        "study/helpers": "import torch\ndef made(): return torch.zeros(4)\n",
        "study/sub/__init__": "",
        "study/sub/run": "from helpers import made\ndef _f(t): pass\n_f(made())\n",
    }
    assert parameter(facts_of(**files), "study/sub/run", "_f", 0) == {PAGEABLE}


@pytest.mark.parametrize(
    "store",
    [
        "    @classmethod\n    def _fill(cls, t): cls.held = t",
        "    @staticmethod\n    def _fill(t): _Box.held = t",
        "    def _fill(self, t): type(self).held = t",
        "    def _fill(self, t): self.__class__.held = t",
    ],
)
@pytest.mark.parametrize("read", ["_Box.held", "_Box().held"])
def test_what_is_stored_on_a_class_is_read_from_it(store: str, read: str) -> None:
    text = f"class _Box:\n    held = None\n{store}\ndef _f(t): pass\ndef read(): _f({read})\n"
    facts = facts_of(a=MAKE.replace("*", "_Box") + "    _Box()._fill(x)\n", b=text)
    assert parameter(facts, "b", "_f", 0) == {PAGEABLE, "constant None"}


def test_what_is_stored_on_another_class_is_not() -> None:
    text = "class _Box:\n    held = None\nclass _Other:\n    held = None\ndef _f(t): pass\ndef read(): _f(_Box.held)\n"
    facts = facts_of(a=MAKE.replace("*", "_Other") + "    _Other.held = x\n", b=text)
    assert parameter(facts, "b", "_f", 0) == {"constant None"}


REGISTRY = """
class _Tables:
    things = {}
    others = {}

    def register(self, table, key):
        def decorate(given):
            kept = getattr(self, table)
            kept[key] = given
            return given
        return decorate

_tables = _Tables()

@_tables.register("things", "a")
def _g(t): pass

def _f(u): _tables.things["a"](u)
"""


def test_a_table_is_filled_by_a_name_that_is_computed() -> None:
    facts = facts_of(a=MAKE.replace("*", "_f") + "    _f(x)\n", b=REGISTRY)
    assert parameter(facts, "b", "_g", 0) == {PAGEABLE}


LAZY = """
import importlib

_NAMES = {"_f": ("c", "_f")}

def __getattr__(name):
    file, taken = _NAMES[name]
    return getattr(importlib.import_module(file), taken)
"""


def test_a_file_gives_lazily_what_it_does_not_have() -> None:
    facts = facts_of(a=MAKE.replace("*", "_f") + "    _f(x)\n", b=LAZY, c="def _f(t): pass\n")
    assert parameter(facts, "c", "_f", 0) == {PAGEABLE}


@pytest.mark.parametrize(
    "loop",
    [
        "for _slot in _slots",
        "for _n, _slot in enumerate(_slots)",
        "for _other, _slot in zip([1, 2], _slots)",
        "for _n, (_other, _slot) in enumerate(zip([1, 2], _slots))",
        "for _slot in dict(enumerate(_slots)).values()",
    ],
)
def test_what_a_loop_puts_into_the_dicts_of_a_list_is_in_them(loop: str) -> None:
    slots = "    _slots = [{'held': None} for _ in range(2)]\n"
    facts = facts_of(a=MAKE + f"{slots}    {loop}:\n        _slot['held'] = x\n    _f(_slots[0]['held'])\n", b="def _f(t): pass\n")
    assert PAGEABLE in parameter(facts, "b", "_f", 0)


@pytest.mark.parametrize("values", ["values()", "items()"])
def test_what_a_loop_puts_into_the_dicts_of_a_dict_is_in_them(values: str) -> None:
    slots = "    _slots = {n: {'held': None} for n in range(2)}\n"
    target = "_slot" if values == "values()" else "_n, _slot"
    body = f"{slots}    for {target} in _slots.{values}:\n        _slot['held'] = x\n    _f(_slots[0]['held'])\n"
    assert PAGEABLE in parameter(facts_of(a=MAKE + body, b="def _f(t): pass\n"), "b", "_f", 0)


@pytest.mark.parametrize(
    ("made", "held"),
    [
        ("field(default_factory=_make)", {PAGEABLE}),
        ("field(default_factory=lambda: _make())", {PAGEABLE}),
        ("field(default=3)", {"constant 3"}),
    ],
)
def test_a_field_of_a_dataclass_holds_what_its_factory_makes(made: str, held: set[str]) -> None:
    record = "from dataclasses import dataclass, field\nimport torch\ndef _make(): return torch.zeros(4)\n"
    record += f"@dataclass\nclass _Record:\n    held: object = {made}\n"
    facts = facts_of(b=f"{record}def _f(t): pass\ndef main():\n    _f(_Record().held)\n")
    assert parameter(facts, "b", "_f", 0) == held

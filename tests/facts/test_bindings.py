"""Program facts over the border of Python and C++: a call in one language enters the function in the other."""

from __future__ import annotations

from functools import partial
from textwrap import dedent

import pytest

from streamlint.facts.code.functions import Function
from streamlint.facts.files.program import Program, SourceFile
from streamlint.facts.graph.facts import Facts, describe
from streamlint.frontends import cuda, python
from streamlint.ir import ModuleIR
from streamlint.ir.modules import lower

PAGEABLE, PINNED = "torch.Tensor in pageable host memory", "at::Tensor in pinned host memory"
OUTSIDE = "unknown (external)"


def facts_of(files: dict[str, str]) -> Facts:
    """The facts of files of both languages."""
    texts = {name: dedent(text) for name, text in files.items()}
    languages = {name: "python" if name.endswith(".py") else "cuda" for name in texts}
    return Facts(Program([SourceFile(name, languages[name], text, partial(_lowered, name, text)) for name, text in texts.items()]))


def _lowered(name: str, text: str) -> ModuleIR:
    return lower(python.lower(name, text) if name.endswith(".py") else cuda.lower(name, text))


def function(facts: Facts, name: str) -> Function:
    return next(one for unit in facts.program.units.values() for one in unit.functions if one.name == name)


def parameter(facts: Facts, name: str, index: int) -> set[str]:
    return {" ".join(describe(value)) for value in facts.argument(function(facts, name), index).values}


def callers(facts: Facts, name: str) -> set[str]:
    return {str(arguments.site) for _, arguments in facts.callers(function(facts, name))}


SOURCE = """
    static void send(at::Tensor t, int n) { t; }
    struct Sender {
      explicit Sender(int n) {}
      void put(at::Tensor t) { send(t, 1); }
    };
"""
MAKE = "import torch\nx = torch.zeros(4, pin_memory=True)\n"


@pytest.mark.parametrize(
    ("bound", "call"),
    [
        ('PYBIND11_MODULE(ext, m) { m.def("go", &send); }', "import ext\next.go(x, 1)"),
        ('PYBIND11_MODULE(ext, m) { m.def("go", &send, "doc", py::arg("t"), py::arg("n") = 1); }', "from ext import go\ngo(t=x)"),
        ('PYBIND11_MODULE(_C, m) { m.def("go", &send); }', "from . import _C\nf = _C.go\nf(x, 1)"),
        ('PYBIND11_MODULE(_C, m) { m.def("go", [](at::Tensor t) { send(t, 2); }); }', "import package._C as c\nc.go(x)"),
        ('PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("go", send); }', "import my_ops\nmy_ops.go(x, 1)"),
        ('NB_MODULE(ext, m) { m.def("go", &send); }', "import ext\next.go(x, 1)"),
        ('TORCH_LIBRARY(ns, m) { m.def("go(Tensor t, int n) -> ()", &send); }', "torch.ops.ns.go(x, 1)"),
        ('TORCH_LIBRARY_IMPL(ns, CUDA, m) { m.impl("go", &send); }', "torch.ops.ns.go.default(x, 1)"),
        ('PYBIND11_MODULE(ext, m) { py::class_<Sender>(m, "Sender").def(py::init<int>()).def("put", &Sender::put); }',
         "import ext\next.Sender(1).put(x)"),
        ('PYBIND11_MODULE(ext, m) { py::class_<Sender> c(m, "S"); c.def(py::init<int>()); c.def("go", &Sender::put); }',
         "import ext\ns = ext.S(1)\ns.go(x)"),
        ('PYBIND11_MODULE(ext, m) { py::class_<Sender>(m, "S").def("go", [](Sender& s, at::Tensor t) { s.put(t); }); }',
         "import ext\next.S(1).go(x)"),
    ],
)  # fmt: skip
def test_python_calls_what_is_bound(bound: str, call: str) -> None:
    facts = facts_of({"ext.cu": dedent(SOURCE) + bound, "use.py": MAKE + call})
    assert PINNED in parameter(facts, "send", 0)


def test_callers_in_python_are_found_by_the_bound_name() -> None:
    bound = 'PYBIND11_MODULE(ext, m) { m.def("go", &send); py::class_<Sender>(m, "S").def(py::init<int>()).def("add", &Sender::put); }'
    use = f"{MAKE}import ext\next.go(x, 1)\nwith_name = ext.S(2)\nwith_name.add(x)\n"
    facts = facts_of({"ext.cu": dedent(SOURCE) + bound, "use.py": use})
    assert "use.py:4" in callers(facts, "send")
    assert callers(facts, "Sender::Sender") == {"use.py:5"}
    assert "use.py:6" in callers(facts, "Sender::put")


def test_a_module_that_is_not_the_extension_is_another() -> None:
    facts = facts_of(
        {"ext.cu": dedent(SOURCE) + 'PYBIND11_MODULE(ext, m) { m.def("go", &send); }', "use.py": MAKE + "import other\nother.go(x, 1)"}
    )
    assert PINNED not in parameter(facts, "send", 0)


@pytest.mark.parametrize(
    ("body", "use"),
    [
        ("cb(t);", "ext.run(take, x)"),
        ("std::function<void(at::Tensor)> f = cb; f(t);", "ext.run(lambda u: take(u), x)"),
        ('cb.attr("take_it")(t);', "ext.run(Taker(), x)"),
        ('py::module_::import("mod").attr("take")(t);', "ext.run(None, x)"),
        ('auto m = py::module_::import("mod"); auto f = m.attr("take"); f(t);', "ext.run(None, x)"),
    ],
)
def test_cpp_calls_python(body: str, use: str) -> None:
    source = f'void run(py::object cb, at::Tensor t) {{ {body} }}\nPYBIND11_MODULE(ext, m) {{ m.def("run", &run); }}'
    module = "def take(t): pass\nclass Taker:\n    def take_it(self, t): take(t)\n"
    main = "import torch\nimport ext\nfrom mod import take, Taker\nx = torch.zeros(4)\n" + use
    facts = facts_of({"ext.cpp": source, "mod.py": module, "main.py": main})
    assert PAGEABLE in parameter(facts, "take", 0)


def test_results_come_back() -> None:
    source = """
        at::Tensor same(at::Tensor t) { return t; }
        PYBIND11_MODULE(ext, m) { m.def("same", &same); }
    """
    facts = facts_of({"ext.cpp": source, "use.py": f"{MAKE}import ext\ndef _take(t): pass\n_take(ext.same(x))\n"})
    assert "torch.Tensor in pinned host memory" in parameter(facts, "_take", 0)

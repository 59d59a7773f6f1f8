"""The call graph: what Python itself calls behind operators, subscripts, scopes and functions of the language."""

from __future__ import annotations

import posixpath

import pytest
from facts.programs import facts_of, function

from streamlint.facts.code.objects import Many
from streamlint.facts.graph.call_graph import CallGraph
from streamlint.facts.values.joins import EVERYWHERE
from streamlint.ir import opcodes as op


def entered(line: str, before: str = "", **files: str) -> set[str]:
    """The functions that the last line of a program may enter, by their qualified names."""
    text = f"{before}\n{line}\n"
    facts = facts_of(main=text, **files)
    graph, body = CallGraph(facts), facts.program.units["main.py"].body
    last = text.count("\n")
    return {edge.callee.name for edge in graph.all_calls(body).edges if body.code.at(edge.instruction[1])[0] == last}


def method(name: str) -> str:
    """A class with a method of a name, and an object of it."""
    return f"class C:\n    def {name}(self, *rest): return self\nc = C()"


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("c + 1", "__add__"),
        ("1 + c", "__radd__"),
        ("c += 1", "__iadd__"),
        ("c += 1", "__add__"),
        ("-c", "__neg__"),
        ("not c", "__bool__"),
        ("not c", "__len__"),
        ("if c: pass", "__bool__"),
        ("c == 1", "__eq__"),
        ("c != 1", "__eq__"),
        ("1 < c", "__gt__"),
        ("1 in c", "__contains__"),
        ("c[1]", "__getitem__"),
        ("c[1] = 2", "__setitem__"),
        ("del c[1]", "__delitem__"),
        ("c.a = 2", "__setattr__"),
        ("with c: pass", "__exit__"),
        ("with c: pass", "__enter__"),
        ("for x in c: pass", "__iter__"),
        ("a, b = c", "__iter__"),
        ("len(c)", "__len__"),
        ("str(c)", "__repr__"),
        ("print(1, c)", "__str__"),
        ("sorted(c)", "__iter__"),
        ("hasattr(c, 'x')", "__getattr__"),
        ("C[int]", "__class_getitem__"),
    ],
)
def test_what_the_language_calls(line: str, name: str) -> None:
    assert entered(line, method(name)) == {f"C.{name}"}
    assert entered(line, method("another") + ("\nC = None" if "C[" in line else "")) == set()


@pytest.mark.parametrize("line", ["sorted(xs, key=f)", "max(xs, key=f)", "list(filter(f, xs))", "list(map(f, xs))"])
def test_functions_that_builtins_are_given(line: str) -> None:
    assert "f" in entered(line, "def f(x): return x\nxs = [1]")


def test_a_setter_runs_where_a_property_is_set() -> None:
    text = "class C:\n    @property\n    def a(self): pass\n    @a.setter\n    def a(self, to): pass\nc = C()"
    assert entered("c.a = 1", text) == {"C.a"}


def test_a_module_is_asked_for_its_names() -> None:
    assert entered("from lib import x", lib="def __getattr__(name): pass\n") == {"__getattr__"}


def test_methods_of_subclasses_answer_for_their_base() -> None:
    text = "class B: pass\nclass S(B):\n    def __add__(self, o): pass\ndef make(b: B): return b\nb = make(S())"
    assert entered("b + 1", text) == {"S.__add__"}


@pytest.mark.parametrize("name", ["'visit_' + kind", "'visit_%s' % kind"])
def test_a_name_whose_beginning_is_known_may_mean_each_such_method(name: str) -> None:
    text = "class V:\n    def visit_a(self): pass\n    def visit_b(self): pass\n    def depart_a(self): pass\nv, kind = V(), input()"
    assert entered(f"getattr(v, {name})()", text) == {"V.visit_a", "V.visit_b"}
    below = "class B:\n    def go(self, kind):\n        getattr(self, 'visit_' + kind)()\nclass S(B):\n    def visit_a(self): pass\n"
    facts = facts_of(main=below)
    run = next(one for one in facts.program.units["main.py"].functions if one.name == "B.go")
    assert [edge.callee.name for edge in CallGraph(facts).all_calls(run).edges] == ["S.visit_a"]


@pytest.mark.parametrize("decorator", ["lru_cache", "lru_cache(maxsize=1)", "cache"])
def test_a_cached_function_is_called(decorator: str) -> None:
    assert entered("f()", f"import functools\n@functools.{decorator}\ndef f(): pass") == {"f"}


@pytest.mark.parametrize(("bases", "found"), [("M, B", ["M.run"]), ("B, M", []), ("B", [])])
def test_a_class_that_is_mixed_in_answers_for_the_one_behind_it(bases: str, found: list[str]) -> None:
    own = "    def run(self): pass\n" if bases == "B, M" else ""
    text = f"class B:\n    def go(self): self.run()\n{own}class M:\n    def run(self): pass\nclass C({bases}): pass\n"
    facts = facts_of(main=text)
    go = next(one for one in facts.program.units["main.py"].functions if one.name == "B.go")
    mixed = [edge.callee.name for edge in CallGraph(facts).all_calls(go).edges if edge.callee.name.startswith("M.")]
    assert mixed == found


@pytest.mark.parametrize("files", [1, 3])
def test_methods_of_many_names_in_few_folders_are_each_called(files: int) -> None:
    names = [f"visit_{number}" for number in range(60)]
    methods = "".join(f"    def {name}(self): pass\n" for name in names)
    visitors = {f"nodes{number}": f"class Visitor{number}:\n{methods}" for number in range(files)}
    imports = "".join(f"from {name} import {name.replace('nodes', 'Visitor')}\n" for name in visitors)
    made = ", ".join(f"Visitor{number}()" for number in range(files))
    before = f"{imports}import sys\nvisitors = [{made}]"
    found = entered("getattr(visitors[len(sys.argv)], 'visit_' + sys.argv[1])()", before, **visitors)
    assert found == {f"Visitor{number}.{name}" for number in range(files) for name in names}


@pytest.mark.parametrize(("folders", "of"), [(20, {f"p{number}" for number in range(20)}), (50, {EVERYWHERE})])
def test_functions_of_too_many_folders_are_one(folders: int, of: set[str]) -> None:
    files = {f"p{number}/m": f"def f{number}(): pass\ndef g{number}(): pass\n" for number in range(folders)}
    imports = "".join(f"from p{number}.m import *\n" for number in range(folders))
    names = [f"{name}{number}" for number in range(folders) for name in "fg"]
    for order in (names, names[::-1]):
        facts = facts_of(main=f"{imports}[{', '.join(order)}][int(input())]()\n", **files)
        body = facts.program.units["main.py"].body
        node = CallGraph(facts).called(body, body.by_opcode[op.CALL][-1])
        facts.solver.solve()
        places = [one.of for one in node.values if isinstance(one, Many)]
        assert len(places) == len(node.values)
        assert {place if isinstance(place, str) else posixpath.dirname(place.path) for place in places} == of


@pytest.mark.parametrize(
    "line",
    ["for each in Batches(): pass", "for each in enumerate(Batches()): pass", "def take(given: Batches):\n    for each in given: pass"],
)
def test_generators_of_objects_have_callers(line: str) -> None:
    """Whoever loops over an object takes the values of the generator that its class has as `__iter__`."""
    facts = facts_of(main=f"class Batches:\n    def __iter__(self):\n        yield 1\n\n{line}\n")
    graph = CallGraph(facts)
    generator = function(facts, "main", "Batches.__iter__")
    callers = {caller.code.name for caller, one in facts.call_places(generator) if graph.calls_at(caller, [one]).edges}
    assert callers == {"take" if "take" in line else "<module>"}


@pytest.mark.parametrize("base", ["torch.nn.Module", "object"])
def test_objects_that_are_declared_have_callers(base: str) -> None:
    """A call of a parameter names neither the class nor its method: the annotation leads to it."""
    method = "forward" if base == "torch.nn.Module" else "__call__"
    text = f"import torch\n\nclass Net({base}):\n    def {method}(self, x):\n        return x\n\ndef use(net: Net, x):\n    return net(x)\n"
    facts = facts_of(main=text)
    assert {caller.code.name for caller, _ in facts.call_places(function(facts, "main", f"Net.{method}"))} == {"use"}


TWO = """
class Near:
    def run(self, a): return a
    def __call__(self, a, *, scale=1): return a
class Far:
    def run(self, a, b): return b
    def __call__(self, a, b): return b
class Any:
    def run(self, *rest, **named): return rest
class Bound:
    @given_more
    def run(self): return 1
one = [Near(), Far(), Any(), Bound()][index]
"""


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("one.run(1)", {"Near.run", "Far.run", "Any.run", "Bound.run"}),
        ("one.run(1, 2)", {"Far.run", "Any.run", "Bound.run"}),
        ("one.run(*rows)", {"Near.run", "Far.run", "Any.run", "Bound.run"}),
        ("one.run(1, 2, *rows)", {"Far.run", "Any.run", "Bound.run"}),
        ("one.run(a=1, c=2)", {"Any.run", "Bound.run"}),
        ("one(1, scale=2)", {"Near.__call__"}),
        ("one(1, 2)", {"Far.__call__"}),
        ("Near.run(one, 1)", {"Near.run"}),
        ("Near.run(one, 1, 2)", set()),
    ],
)
def test_a_call_enters_what_takes_its_arguments(line: str, found: set[str]) -> None:
    assert entered(line, TWO) == found

"""What solving costs grows with the program: steps are counted, for programs of n parts and of twice as many."""

from collections.abc import Callable

import pytest
from facts.programs import facts_of

from streamlint.facts.code.functions import Function
from streamlint.facts.graph.call_graph import CallGraph
from streamlint.facts.values.nodes import Node, Solver


def _registry(size: int) -> str:
    """Functions that a decorator puts into a table, called by name from many places."""
    made = "".join(f"@register\ndef f{n}(x, **kwargs):\n    return build(x, size={n}, **kwargs)\n" for n in range(size))
    used = "".join(f"def use{n}(x):\n    return call('f{n}', x, width={n})\n" for n in range(size))
    return (
        "TABLE = {}\ndef register(f):\n    TABLE[f.__name__] = f\n    return f\n"
        "def build(x, size, width=1, depth=2):\n    return x\n"
        f"def call(name, *args, **kwargs):\n    return TABLE[name](*args, **kwargs)\n{made}{used}"
    )


def _visitor(size: int) -> str:
    """Classes that register themselves, and a visitor that looks its methods up by the class of what it visits."""
    nodes = "".join(f"class N{n}(Node):\n    def accept(self, v): return v.visit(self)\n" for n in range(size))
    visits = "".join(f"    def visit_n{n}(self, node):\n        return [self.visit(one) for one in node.children]\n" for n in range(size))
    made = ", ".join(f"N{n}([])" for n in range(size))
    return (
        "class Node:\n    kinds = []\n    def __init_subclass__(cls): Node.kinds.append(cls)\n"
        "    def __init__(self, children): self.children = children\n"
        f"{nodes}class Visitor:\n    def visit(self, node):\n"
        "        return getattr(self, 'visit_' + type(node).__name__.lower())(node)\n"
        f"{visits}def run():\n    return Visitor().visit(Node([{made}]))\n"
    )


def _methods(size: int) -> str:
    """A class attribute with a table of functions, which each class below takes over and adds to, called through `self`."""
    classes = "".join(
        f"class C{n}(C{n - 1}):\n    TABLE = {{**C{n - 1}.TABLE, 'k{n}': lambda self, x: self.parse(x, {n})}}\n" for n in range(1, size)
    )
    return (
        "class C0:\n    TABLE = {'k0': lambda self, x: self.parse(x, 0)}\n"
        "    def parse(self, x, n):\n        return self.TABLE[x.name](self, x.rest)\n"
        f"{classes}def run(x):\n    return C{size - 1}().parse(x, 0)\n"
    )


def _keywords(size: int) -> str:
    """Functions that hand ``**kwargs`` on to constructors over several others, each with names of its own."""
    makers = "".join(
        f"def make{n}(**kwargs):\n    return create{n % 4}(**dict(dict(a{n}=[{n}], b{n}=2), **kwargs))\n"
        f"def use{n}():\n    return make{n}(c{n}=[{n}], d={n})\n"
        for n in range(size)
    )
    names = ", ".join(f"a{n}=None, b{n}=None, c{n}=None" for n in range(size))
    creators = "".join(f"def create{n}(**kwargs):\n    return build(Model{n}, **kwargs)\n" for n in range(4))
    classes = "".join(f"class Model{n}:\n    def __init__(self, {names}):\n        self.held = a0\n" for n in range(4))
    return f"def build(kind, **kwargs):\n    return kind(**kwargs)\n{creators}{classes}{makers}"


def _constructors(size: int) -> str:
    """Classes without a constructor of their own below one that keeps what it is given."""
    classes = "".join(f"class C{n}(Base):\n    def read{n}(self):\n        return self.args\n" for n in range(size))
    made = "".join(f"def use{n}():\n    return C{n}([{n}]).read{n}()\n" for n in range(size))
    return f"class Base:\n    def __init__(self, *args, **kwargs):\n        self.args = [args, kwargs]\n{classes}{made}"


def _chains(size: int) -> str:
    """Calls of one another, each from three places, whose results depend on what they are given."""
    return "def f0(x): return [x]\n" + "".join(
        f"def f{n}(x):\n    a = f{n - 1}(x)\n    b = f{n - 1}([x])\n    return f{n - 1}((a, b))\n" for n in range(1, size)
    )


def _builder(size: int) -> str:
    """A builder whose methods return it, in long chains, over containers that hold one another."""
    methods = "".join(f"    def m{n}(self, x):\n        self.parts[{n}] = [x, self.parts]\n        return self\n" for n in range(size))
    chain = "".join(f".m{n}({{'a': [{n}]}})" for n in range(size))
    return f"class B:\n    def __init__(self):\n        self.parts = {{}}\n{methods}def run():\n    return B(){chain}.parts\n"


def _recursion(size: int) -> str:
    """Functions that call one another over the values of dicts."""
    return "".join(
        f"def g{n}(tree):\n    return {{key: g{(n + 1) % size}(value) for key, value in tree.items()}}\n" for n in range(size)
    ) + "".join(f"def use{n}():\n    return g{n}({{'a': {{'b': {n}}}}})\n" for n in range(size))


@pytest.mark.parametrize("make", [_registry, _visitor, _methods, _keywords, _constructors, _chains, _builder, _recursion])
@pytest.mark.parametrize("size", [60, 80])
def test_steps_grow_with_the_program(make: Callable[[int], str], size: int) -> None:
    small, large = _steps(make(size)), _steps(make(2 * size))
    assert large <= 2.2 * small


def _steps(text: str) -> int:
    facts = facts_of(a=text)
    functions: list[Function] = [one for unit in facts.program.units.values() for one in unit.functions]
    CallGraph(facts).prepare(functions)
    for one in functions:
        for index in range(len(one.code.parameters)):
            facts.argument(one, index)
    return facts.solver.steps


def _chain(free: int = 0) -> tuple[Solver, list[Node], Node]:
    solver = Solver(*[lambda value: value] * 4)
    solver.beyond, solver.most, solver.free = "anything", 2000, free  # type: ignore[assignment]
    nodes: list[Node] = []

    def chain(index: int) -> Node:
        def make(node: Node) -> None:
            if index:
                nodes.append(chain(index - 1))
                solver.edge(nodes[-1], node)
            else:
                solver.add(node, "found")  # type: ignore[arg-type]

        return Node(make)

    first = chain(2500)
    solver.demand(first)
    solver.solve()
    return solver, nodes, first


def test_a_question_is_not_cut_before_the_free_steps_are_taken() -> None:
    solver, _, first = _chain(free=20_000)
    assert (list(first.values), solver.cut) == (["found"], 0)


def test_a_question_that_takes_too_long_is_cut_and_another_goes_on() -> None:
    solver, nodes, first = _chain()
    assert (list(first.values), solver.cut) == (["anything"], 1)
    solver.demand(nodes[-1])
    solver.solve()
    assert (set(first.values), solver.cut) == ({"anything", "found"}, 1)


def test_what_runs_at_last_sees_all_that_is_demanded() -> None:
    solver = Solver()
    seen: list[int] = []
    behind, before = Node(lambda node: solver.edge(before, node)), Node(lambda node: solver.add(node, "late"))  # type: ignore[arg-type]
    solver.demand(behind)
    solver.at_last(lambda: seen.append(len(behind.values)))
    solver.solve()
    assert seen == [1]

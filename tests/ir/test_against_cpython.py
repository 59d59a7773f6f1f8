"""Running the intermediate representation of random Python functions gives what CPython gives."""

from __future__ import annotations

import random
import sys
from pathlib import Path
from typing import Any

import pytest
from thorough import cases

sys.path.insert(0, str(Path(__file__).parent))
from reference import Reference

_PRELUDE = '''
log = []


class Manager:
    """A context manager that may swallow what ends it."""

    def __init__(self, name, swallow=False):
        self.name, self.swallow = name, swallow

    def __enter__(self):
        log.append(("enter", self.name))
        return self.name

    def __exit__(self, kind, value, trace):
        log.append(("exit", self.name, kind.__name__ if kind else None))
        return self.swallow


def say(*values, **named):
    log.append((values, sorted(named.items())))
    return len(values)


def kind(value):
    return type(value).__name__


class Point:
    """What class patterns look at."""

    __match_args__ = ("x", "y")

    def __init__(self, x, y):
        self.x, self.y = x, y


def fail(value):
    raise (ValueError, KeyError, TypeError)[value % 3](value)
'''


class Program:
    """A random function; ``names`` are its variables, each bound before it is read."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.names = ["a", "b", "c"]
        self.counter = 0
        self.in_loop = False
        self.left = 24  # compound statements, so that programs end

    def text(self) -> str:
        self.lines = ["def run(a, b=2, *rest, c=3, **more):"]
        for index in range(self.random.randint(2, 7)):
            self.statement(1, index)
        self.line(1, f"return [{', '.join(self.names)}]")
        failed = "except Exception as error:\n    results.append(repr(error))"
        calls = [f"try:\n    results.append(run({args}))\n{failed}" for args in _ARGUMENTS]
        return "\n".join([_PRELUDE, *self.lines, "results = []", *calls, ""])

    def line(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def number(self, depth: int = 0) -> str:
        """An expression that is a number."""
        pick = self.random.random()
        if depth > 2 or pick < 0.35:
            return self.random.choice([*self.names, str(self.random.randint(-3, 9))])
        left, right = self.number(depth + 1), self.number(depth + 1)
        templates = (
            "({0} {op} {1})", "({0} if {test} else {1})", "max({0}, {1})", "({0} and {1})", "({0} or {1})", "abs({0})", "-{0}",
            "sum(i * {0} for i in range(3) if i != {1})", "len([j for j in range(abs({0}) % 4) for k in range(2) if j > k])",
            "(lambda q, r={0}: q + r)({1})", "{{'x': {0}, **{{'y': {1}}}}}['y']", "[{0}, {1}][{0} % 2]", "say({0}, k={1})",
            "(n := {0})", "[*range(3), {0}][-1]", "max({{{0}, {1}}})", "(7 // {0})",
        )  # fmt: skip
        found = self.random.choice(templates).format(left, right, op=self.random.choice("+-*&|^"), test=self.test(depth + 1))
        return found.replace("n :=", f"{self.fresh()} :=") if "n :=" in found else found

    def fresh(self) -> str:
        self.counter += 1
        return f"w{self.counter}"

    def test(self, depth: int = 0) -> str:
        if depth > 2 or self.random.random() < 0.6:
            return f"{self.number(3)} {self.random.choice(['<', '>=', '==', '!='])} {self.number(3)}"
        template = self.random.choice(("not ({0})", "({0} and {1})", "({0} or {1})", "{2} < {3} <= {4}", "{2} < say({3}) != {4}"))
        return template.format(self.test(depth + 1), self.test(depth + 1), *(self.number(3) for _ in range(3)))

    def block(self, depth: int) -> None:
        for index in range(self.random.randint(1, 3)):
            self.statement(depth, index)

    def statement(self, depth: int, index: int) -> None:
        kinds = ["assign", "augment", "call", "unpack", "function", "generator", "delete"]
        self.left -= 1
        if depth < 5 and self.left > 0:
            kinds += ["if", "for", "while", "try", "finally", "with", "both", "match"] * 2
        if self.in_loop and index:
            kinds += ["break", "continue"]
        if depth > 1 and index:
            kinds += ["return", "raise", "fail"]
        getattr(self, f"_{self.random.choice(kinds)}")(depth)

    def _assign(self, depth: int) -> None:
        self.line(depth, f"{self.random.choice(self.names)} = {self.number()}")

    def _augment(self, depth: int) -> None:
        self.line(depth, f"{self.random.choice(self.names)} {self.random.choice(['+', '-', '*', '//'])}= {self.number()}")

    def _call(self, depth: int) -> None:
        self.line(depth, f"say({self.number()}, *rest, z={self.number()}, **more)")

    def _unpack(self, depth: int) -> None:
        one, two = self.random.sample(self.names, 2)
        self.line(depth, f"{one}, *_, {two} = {self.number()}, 1, *rest, {self.number()}")

    def _function(self, depth: int) -> None:
        name, variable = self.fresh(), self.random.choice(self.names)
        shared = self.random.random() < 0.5
        self.line(depth, f"def {name}(x, y={self.number()}):")
        if shared:
            self.line(depth + 1, f"nonlocal {variable}")
            self.line(depth + 1, f"{variable} += x")
        self.line(depth + 1, f"return x + y + {variable}")
        self.line(depth, f"{self.random.choice(self.names)} = {name}({self.number()})")

    def _generator(self, depth: int) -> None:
        name = self.fresh()
        self.line(depth, f"def {name}(x):")
        self.line(depth + 1, "try:")
        self.line(depth + 2, f"y = yield x + {self.random.choice(self.names)}")
        self.line(depth + 2, f"yield from [y, {self.number(2)}]")
        self.line(depth + 1, "finally:")
        self.line(depth + 2, "say('done')")
        self.line(depth, f"say(*{name}({self.number()}))")

    def _delete(self, depth: int) -> None:
        """A name that a closure shares in half of the cases."""
        name = self.fresh()
        self.line(depth, f"{name} = {self.number()}")
        if self.random.random() < 0.5:
            self.line(depth, f"say((lambda: {name})())")
        self.line(depth, f"del {name}")

    def _match(self, depth: int) -> None:
        one, two = self.random.sample(self.names, 2)
        subjects = ("{0}", "[{0}, {1}, 3]", "{{'k': {0}, 'm': {1}}}", "Point({0}, {1})", "(Point({0}, 1), [{1}])")
        self.line(depth, f"match {self.random.choice(subjects).format(self.number(2), self.number(2))}:")
        patterns = (
            "1 | 2 | -1", "[{0}, *_]", "[_, {0}, {1}]", "{{'k': {0}, **{1}}} if len({1})", "{{'m': 2}}", "Point({0}, y={1})", "Point(x=1)",
            "[Point() as {0}, [*{1}]]", "[{0}, {1}] | [Point({0}), {1}]", "int({0}) if {0} > {1}", "None | True",
            "(Point(x=0 | 1, y={0}), _)",
        )  # fmt: skip
        for pattern in self.random.sample(patterns, self.random.randint(1, 4)):
            fresh = [self.fresh(), self.fresh()]
            names = (fresh[0], two) if "> {1}" in pattern else fresh
            self.line(depth + 1, f"case {pattern.format(*names)}:")
            bound = [name for name in fresh if name in pattern.format(*names)]
            self.line(depth + 2, f"say('fits', *map(kind, [{', '.join(bound)}]))")
            self.block(depth + 2)
        if self.random.random() < 0.5:
            self.line(depth + 1, f"case {one}:")
            self.line(depth + 2, f"{one} = 1")

    def _if(self, depth: int) -> None:
        self.line(depth, f"if {self.test()}:")
        self.block(depth + 1)
        if self.random.random() < 0.4:
            self.line(depth, f"elif {self.test()}:")
            self.block(depth + 1)
        if self.random.random() < 0.5:
            self.line(depth, "else:")
            self.block(depth + 1)

    def _looped(self, depth: int) -> None:
        outer, self.in_loop = self.in_loop, True
        self.block(depth + 1)
        self.in_loop = outer
        if self.random.random() < 0.3:
            self.line(depth, "else:")
            self.block(depth + 1)

    def _for(self, depth: int) -> None:
        rounds = self.random.randint(0, 3)
        until = f"iter([-1, *range({rounds})].pop, {self.random.randint(-1, 2)})"
        values = until if self.random.random() < 0.3 else f"range({rounds})"
        self.line(depth, f"for {self.random.choice(self.names)} in {values}:")
        self._looped(depth)

    def _while(self, depth: int) -> None:
        counter = self.fresh()
        self.line(depth, f"{counter} = 0")
        self.line(depth, f"while {counter} < {self.random.randint(1, 3)}:")
        self.line(depth + 1, f"{counter} += 1")
        self._looped(depth)

    def _try(self, depth: int, final: bool = False) -> None:
        self.line(depth, "try:")
        self.block(depth + 1)
        errors = ["ValueError", "KeyError", "(TypeError, ZeroDivisionError)", "Exception"]
        self.line(depth, f"except {self.random.choice(errors)} as error:")
        self.line(depth + 1, "say(repr(error))")
        self.block(depth + 1)
        if self.random.random() < 0.3:
            self.line(depth, "else:")
            self.block(depth + 1)
        if final:
            self._final(depth)

    def _both(self, depth: int) -> None:
        self._try(depth, final=True)

    def _finally(self, depth: int) -> None:
        self.line(depth, "try:")
        self.block(depth + 1)
        self._final(depth)

    def _final(self, depth: int) -> None:
        outer, self.in_loop = self.in_loop, False
        self.line(depth, "finally:")
        self.block(depth + 1)
        self.in_loop = outer

    def _with(self, depth: int) -> None:
        self.line(depth, "try:")
        self.line(depth + 1, f"with Manager(1, {self.test()}) as {self.random.choice(self.names)}, Manager(2):")
        self.block(depth + 2)
        self.line(depth, "except ArithmeticError:")
        self.line(depth + 1, "say('arithmetic')")

    def _break(self, depth: int) -> None:
        self.line(depth, "break")

    def _continue(self, depth: int) -> None:
        self.line(depth, "continue")

    def _return(self, depth: int) -> None:
        self.line(depth, f"return {self.number()}")

    def _raise(self, depth: int) -> None:
        self.line(depth, f"raise ValueError({self.number()})")

    def _fail(self, depth: int) -> None:
        self.line(depth, f"{self.random.choice(self.names)} = fail({self.number()})")


_ARGUMENTS = ("1", "0, 5", "2, 1, 4, 6, c=0", "3, c=-1, d=7")


def _program(seed: int) -> str:
    """A program that CPython takes: ``:=`` is not allowed everywhere."""
    for attempt in range(20):
        text = Program(seed * 1000 + attempt).text()
        try:
            compile(text, "test.py", "exec")
        except SyntaxError:
            continue
        return text
    raise AssertionError("no program")


def _run(text: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(text, "test.py", "exec"), names)
    return names


@pytest.mark.parametrize("group", cases(25, 75))
def test_random_functions(group: int) -> None:
    for seed in range(group * 4, group * 4 + 4):
        text = _program(seed)
        expected = _run(text)
        found = Reference(text).run()
        assert found["results"] == expected["results"], text
        assert found["log"] == expected["log"], text

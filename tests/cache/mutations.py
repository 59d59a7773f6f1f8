"""Edits by chance of a tree of sources: comments, docstrings, lines, constants, names, functions, whole files."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping

Tree = dict[str, str | None]  # None: the file is gone
Mutation = Callable[[random.Random, str, list[str]], list[str]]  # a file's name and lines, and what its lines become

_DEF = re.compile(r"^(\s*)(?:async )?def \w+\(.*\).*:\s*$")
_OPENS = re.compile(r"^[^\s#/].*\)\s*(?:const )?\{\s*$")  # C++: a body at the left margin
_CALLED = re.compile(r"\b(\w+)\(")
_WORDS = re.compile(r"[A-Za-z_][\w.]{2,}\(?")


def comment(chance: random.Random, name: str, lines: list[str]) -> list[str]:
    """A line that does not run, with words that may count elsewhere."""
    said = f"{chance.choice(_WORDS.findall(chr(10).join(lines)) or ['none'])} {chance.random()}"
    mark = "//" if not name.endswith((".py", ".toml")) else "#"
    at = chance.randrange(len(lines) + 1)
    if chance.random() < 0.4 and lines:
        return [*lines[: at - 1], f"{lines[at - 1]}  {mark} {said}", *lines[at:]] if at else lines
    return [*lines[:at], f"{mark} {said}", *lines[at:]]


def docstring(chance: random.Random, name: str, lines: list[str]) -> list[str]:
    """A text at the head of a function."""
    heads = [number for number, line in enumerate(lines) if _DEF.match(line)]
    if not heads or not name.endswith(".py"):
        return blank(chance, name, lines)
    at = chance.choice(heads)
    indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
    return [*lines[: at + 1], f'{indent}    """Does it {chance.random()}."""', *lines[at + 1 :]]


def blank(chance: random.Random, name: str, lines: list[str]) -> list[str]:
    """An empty line comes."""
    at = chance.randrange(len(lines) + 1)
    return [*lines[:at], "", *lines[at:]]


def without(chance: random.Random, name: str, lines: list[str]) -> list[str]:
    """A line goes, whatever that breaks."""
    at = chance.randrange(max(len(lines), 1))
    return [*lines[:at], *lines[at + 1 :]]


def twice(chance: random.Random, name: str, lines: list[str]) -> list[str]:
    """A line comes again."""
    at = chance.randrange(max(len(lines), 1))
    return [*lines[:at], *lines[at : at + 1] * 2, *lines[at + 1 :]]


def constant(chance: random.Random, name: str, lines: list[str]) -> list[str]:
    """A constant becomes another one."""
    swaps = {"True": "False", "False": "True", "0": "1", "1": "2", "10": "1", "20": "3", '"cuda"': '"cpu"', '"cpu"': '"cuda"'}
    pattern = re.compile(r"\b(?:True|False|0|1|10|20)\b|\"(?:cuda|cpu)\"")
    text = "\n".join(lines)
    found = list(pattern.finditer(text))
    if not found:
        return lines
    match = chance.choice(found)
    return (text[: match.start()] + swaps[match[0]] + text[match.end() :]).split("\n")


def renamed(chance: random.Random, name: str, lines: list[str]) -> list[str]:
    """A name is another one in this file, and in no other."""
    names = sorted(set(re.findall(r"\b(?:def|class|import|void)\s+(\w+)", "\n".join(lines))))
    if not names:
        return lines
    old = chance.choice(names)
    return re.sub(rf"\b{old}\b", f"{old}_other", "\n".join(lines)).split("\n")


def function(chance: random.Random, name: str, lines: list[str]) -> list[str]:
    """One function more, that nobody calls."""
    if name.endswith(".py"):
        return [*lines, "", "", f"def more_{chance.randrange(99)}(x):", "    return x.cpu()", ""]
    return [*lines, f"void more_{chance.randrange(99)}(float* p) {{ cudaFree(p); }}", ""]


def _in_cpp(chance: random.Random, lines: list[str]) -> list[str] | None:
    heads = [number for number, line in enumerate(lines) if _OPENS.match(line)]
    if not heads:
        return None
    called = sorted(set(_CALLED.findall("\n".join(lines)))) or ["abort"]
    said = chance.choice(
        ("(void)0;", "cudaDeviceSynchronize();", "cudaStream_t more; cudaStreamCreate(&more);", f"{chance.choice(called)}();")
    )
    at = chance.choice(heads)
    return [*lines[: at + 1], f"  {said}", *lines[at + 1 :]]


def statement(chance: random.Random, name: str, lines: list[str]) -> list[str]:
    """A statement more in some function."""
    heads = [number for number, line in enumerate(lines) if _DEF.match(line)]
    if not name.endswith((".py", ".pyx")) and (found := _in_cpp(chance, lines)) is not None:
        return found
    if not heads or not name.endswith(".py"):
        return function(chance, name, lines)
    at = chance.choice(heads)
    indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())] + "    "
    said = chance.choice(("torch.cuda.synchronize()", "unused = 1", "return None", "import torch"))
    return [*lines[: at + 1], f"{indent}{said}", *lines[at + 1 :]]


MUTATIONS: tuple[Mutation, ...] = (
    comment,
    comment,
    docstring,
    blank,
    without,
    twice,
    constant,
    constant,
    renamed,
    function,
    statement,
    statement,
)


def mutated(chance: random.Random, tree: Tree, original: Mapping[str, str]) -> Tree:
    """What changes: one or two files are edited, go, come as a copy or are as they were."""
    edit: Tree = {}
    for _ in range(chance.choice((1, 1, 1, 2))):
        name = chance.choice(sorted(tree))
        text, kind = tree[name], chance.random()
        if text is None or kind < 0.08:
            edit[name] = original.get(name)
        elif kind < 0.14:
            edit[name] = None
        elif kind < 0.2:
            folder, _, last = name.rpartition("/")
            edit[f"{folder}/{chance.choice(('', 'sub/'))}copy_of_{last}" if folder else f"copy_of_{last}"] = text
        else:
            edit[name] = "\n".join(chance.choice(MUTATIONS)(chance, name, text.split("\n")))
    return edit

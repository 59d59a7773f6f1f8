"""``streamlint debug facts``, ``callers`` and ``callees``: what the program facts say of a line or a function, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from streamlint.commands.debug_ir import parsed, split_place
from streamlint.commands.parser import Parser
from streamlint.facts.code.functions import Function
from streamlint.facts.files.program import Program, SourceFile, Unit
from streamlint.facts.graph.facts import Facts, describe
from streamlint.frontends import UnreadableSource
from streamlint.ir import Instruction, ModuleIR
from streamlint.ir import opcodes as op
from streamlint.ir.modules import lower
from streamlint.support.errors import PathError, StreamlintError, did_you_mean
from streamlint.support.reading import Unreadable, decode, language_of, read_source

Answer = Callable[[Facts, Unit, str], Iterator[str]]
_SKIPPED = frozenset({".git", ".venv", "venv", "node_modules", "__pycache__", "build"})

_READ = ("python", "cuda")


def main(words: list[str]) -> int:
    """``debug facts FILE:LINE``: what the values on a line may be."""
    return run("facts", "Print what the values on a line may be, and through which calls.", "FILE:LINE", words, _facts)


def callees(words: list[str]) -> int:
    """``debug callees FILE:LINE``: what the calls on a line may enter."""
    return run("callees", "Print what the calls on a line may enter.", "FILE:LINE", words, _callees)


def callers(words: list[str]) -> int:
    """``debug callers FILE:FUNCTION``: the calls that enter a function."""
    return run("callers", "Print the calls that enter a function.", "FILE:FUNCTION", words, _callers)


def run(name: str, about: str, metavar: str, words: list[str], answer: Answer) -> int:
    """Read the words of a subcommand, solve the program that its place is in, and print the answer's lines."""
    example = f"streamlint debug {name} train.py:{'step' if 'FUNCTION' in metavar else 12}"
    parser = Parser(f"debug {name}", f"{about} Python and C++.", ((example, ""),))
    parser.add_argument("place", metavar=metavar, help="a Python or C++ file, and a line or function in it")
    parser.add_argument("--root", metavar="DIR", help="the program's folder; default: the nearest one with a pyproject.toml")
    options = parser.read(words)
    path, wanted = split_place(options.place)
    if not Path(path).is_file():
        raise PathError(f"{path}: no such file")
    root = Path(options.root) if options.root else _root_of(Path(path))
    facts = Facts(Program(list(sources(root))))
    unit = next((unit for name, unit in facts.program.units.items() if Path(name).exists() and Path(name).samefile(path)), None)
    if unit is None:
        raise StreamlintError(f"{path}: not a source file below {root}")
    if (failure := facts.program.failing.get(unit)) is not None:
        print(f"nothing in this file runs: {failure}")
        return 0
    for line in answer(facts, unit, wanted):
        print(line)
    return 0


def _root_of(path: Path) -> Path:
    above = path.resolve().parents
    return next((folder for folder in above if (folder / "pyproject.toml").exists() or (folder / ".git").exists()), above[0])


def sources(root: Path) -> Iterator[SourceFile]:
    """The Python and C++ files below a folder."""
    for path in sorted(root.rglob("*")):
        language = language_of(path.name)
        if language in _READ and _SKIPPED.isdisjoint(path.relative_to(root).parts) and path.is_file():
            try:
                text, _ = decode(read_source(str(path)), language, str(path))
            except Unreadable:
                continue
            yield SourceFile(path.as_posix(), language, text, partial(_lowered, path.as_posix(), text, language))


def _lowered(path: str, text: str, language: str) -> ModuleIR | None:
    try:
        return lower(parsed(path, text, language))
    except UnreadableSource:
        return None


def _on_line(unit: Unit, wanted: str) -> Iterator[tuple[Function, Instruction]]:
    """The instructions that stand on a line and define something."""
    if not wanted.isdigit():
        raise StreamlintError(f"{unit.path}:{wanted}: not a line")
    found = [
        (function, one)
        for function in unit.functions
        for one in function.code.instructions()
        if op.DEFINES[one[0]] and one[1] >= 0 and function.code.at(one[1])[0] == int(wanted)
    ]
    yield from sorted(found, key=lambda held: held[0].code.at(held[1][1]))


def _facts(facts: Facts, unit: Unit, wanted: str) -> Iterator[str]:
    lines = unit.source.text.splitlines()
    for function, one in _on_line(unit, wanted):
        if one[0] in (op.FUNCTION, op.CLASS, op.CONST):
            continue
        for register in op.reads(one):
            given = function.definitions[register]
            if given is not None and given[0] == op.PARAM:
                yield f"{function.code.parameters[given[3]].name}:"
                yield from _values(facts, function, register)
        row, column, end_row, end_column = function.code.at(one[1])
        text = lines[row - 1][column - 1 : end_column - 1 if end_row == row else None]
        yield f"{function.code.parameters[one[3]].name if one[0] == op.PARAM else text}:"
        yield from _values(facts, function, one[2])


def _values(facts: Facts, function: Function, register: int) -> Iterator[str]:
    node = facts.values(function, register)
    for value in node.values:
        places = dict.fromkeys(str(site) for site in node.trace(value))
        yield f"  {' '.join(describe(value))}{' from ' if places else ''}{', '.join(places)}"


def _callees(facts: Facts, unit: Unit, wanted: str) -> Iterator[str]:
    for function, one in _on_line(unit, wanted):
        if one[0] in (op.CALL, op.INVOKE, op.LAUNCH, op.CONSTRUCT, op.NEW):
            yield from dict.fromkeys(" ".join(describe(value)) for value in facts.callees(function, one))


def functions_named(unit: Unit, wanted: str) -> list[Function]:
    """The functions of a file by a name. Raises StreamlintError where there is none."""
    named = [function for function in unit.functions if wanted in (function.name, function.code.name)]
    if not named:
        known = [function.name for function in unit.functions]
        raise StreamlintError(f"{unit.path}: no function '{wanted}'{did_you_mean(wanted, known)}")
    return named


def _callers(facts: Facts, unit: Unit, wanted: str) -> Iterator[str]:
    sites = (arguments.site for function in functions_named(unit, wanted) for _, arguments in facts.callers(function))
    yield from sorted({f"{site}" for site in sites if site is not None})

"""Which files work with streams, and how."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from streamlint.build_files import build_root
from streamlint.facts.code.functions import Function
from streamlint.facts.code.instructions import last_name
from streamlint.facts.code.objects import LibraryObject, Site
from streamlint.facts.files.extensions import host_functions
from streamlint.facts.files.program import Program, Unit
from streamlint.hazards.streams import Streams
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.models import Models
from streamlint.models.vocabulary import Selector
from streamlint.ordering.streams.choices import NULL
from streamlint.waits.operands import Given, argument_registers

_FEWEST = 4
_RUNTIME = "cudart"  # `torch.cuda.cudart()` gives a module of the CUDA runtime


class StreamFiles:
    """What files do with streams."""

    def __init__(self, streams: Streams) -> None:
        self.streams = streams
        self.facts = streams.facts
        self.transfer = streams.transfer
        self._counts: dict[str, tuple[int, int]] = {}

    def may_matter(self, unit: Unit) -> bool:
        """Whether the work of a file can be put on a stream at all, by the names in it and by those that make streams in the program."""
        if unit.is_cpp:
            return self.streams.per_thread(unit) is not True
        if is_cython(unit):
            return True
        if not self._makes_streams:
            return False
        program = self.facts.program
        return bool(libraries_of(program, unit)) or any(libraries_of(program, each) - {_RUNTIME} for each in self._imported(unit))

    def _imported(self, unit: Unit) -> Iterator[Unit]:
        """The files of the program that a file imports: kernels may come from there."""
        for module in dict.fromkeys(module for module, _ in unit.imports):
            target = self.facts.program.imported(module, unit)
            if target is not None and not target.is_cpp:
                yield target

    @cached_property
    def _makes_streams(self) -> bool:
        return any(map(self.facts.program.mentioning, self.transfer.names(frozenset({"stream"}))))

    def uses_streams(self, function: Function) -> bool:
        """Whether a function may put work on a stream that is not the default one, by the way it is written: solving its calls costs."""
        if function.is_cpp or is_cython(function.unit):
            return True
        for one in function.by_opcode[op.ENTER]:
            values = self.transfer.values(function, one[3])
            if any(isinstance(value, LibraryObject) and value.kind in ("stream", "scope") for value in values):
                return True
        for one in (*function.by_opcode[op.CALL], *function.by_opcode[op.INVOKE]):
            given = argument_registers(function, one)
            if any(_is_given(selector, given) for selector in self._takers.get(last_name(function, one), ())):
                return True
            if _is_launched_on(function, one):
                return True
        return False

    @cached_property
    def _takers(self) -> dict[str, list[Selector]]:
        """By the last part of the name: where the functions of Python's libraries take a stream."""
        return self.facts.models.gathered(_takers)

    def is_extension(self, unit: Unit) -> bool:
        """Whether a file is a part of an extension of PyTorch."""
        return unit.is_cpp and self.streams.extensions.has(unit)

    def is_without_streams(self, unit: Unit) -> bool:
        """Whether no function of a file works with a stream."""
        return not any(
            self.streams.in_scope.is_given(function) or self.streams.in_scope.works_with(function) for function in host_functions(unit)
        )

    def _lives_on_null(self, unit: Unit) -> bool:
        """Whether the project works on the null stream by design: most of its launches are there."""
        root = build_root(unit.path)
        if root not in self._counts:
            null = given = 0
            for other in self.facts.program.units.values():
                if other.is_cpp and build_root(other.path) == root:
                    for _, has_stream in self._launches(other):
                        given, null = given + has_stream, null + (not has_stream)
            self._counts[root] = null, given
        null, given = self._counts[root]
        return null > max(given, _FEWEST)

    def _launches(self, unit: Unit) -> Iterator[tuple[Site, bool]]:
        """The kernel launches of a file, and whether each names a stream that is not null."""
        for function in unit.functions:
            for one in function.by_opcode[op.LAUNCH] if "kernel" not in function.code.flags else ():
                kinds = {event.choice.kind for event in self.streams.beside.own(function) if event.instruction == one and event.choice}
                yield Site(function, one), one[5] > 3 and kinds != {NULL}

    def _has_one_stream(self, unit: Unit) -> bool:
        """Whether a program of its own makes no streams, and switches none: all that it is given is the null stream."""
        if not self.streams.extensions.is_own_program(unit):
            return False
        names = self.facts.cpp_models.gathered(_making)
        near = self.facts.program.cpp.visible(unit)
        return not any(other in near for name in names for other in self.facts.program.mentioning(name))

    def own_stream(self, unit: Unit) -> Site | None:
        """The first launch on a stream of file scope: four at least are, and four for each on the null stream."""
        if not unit.is_cpp:
            return None
        launches = list(self._launches(unit))
        own = [site for site, given in launches if given and self._is_of_file(site)]
        enough = len(own) >= max(_FEWEST, _FEWEST * sum(not given for _, given in launches))
        return own[0] if enough else None

    def _is_of_file(self, site: Site) -> bool:
        register = site.instruction[9] if site.instruction[5] > 3 else op.NONE
        place = self.streams.choices.places.of(site.function, register)
        return place.root[0] == "global" and not place.path


def is_cython(unit: Unit) -> bool:
    return unit.source.language == "cython" or unit.path.endswith((".pyx", ".pxd"))


def _is_given(selector: Selector, given: list[Given]) -> bool:
    """Whether a call gives the argument that a selector means."""
    if selector.kind == "self":
        return True
    plain = sum(kind is None for kind, _ in given)
    return any(kind == selector.keyword for kind, _ in given if kind is not None) or (
        selector.position is not None and selector.position < plain
    )


def libraries_of(program: Program, unit: Unit) -> set[str]:
    """The libraries of Python besides PyTorch whose streams a file may use: those that it imports."""
    explicit = program.rows_of("python").marked("explicit")
    named = {word for word in (*explicit, _RUNTIME) if unit in program.mentioning(word)}
    if not named or is_cython(unit):
        return named
    return {module.partition(".")[0] for module, _ in unit.imports} & explicit | named & {_RUNTIME}


def _is_launched_on(function: Function, one: Instruction) -> bool:
    """Whether a call launches a kernel on a stream: ``kernel[grid, block, stream](x)``."""
    config = function.definitions[one[3]] if one[0] == op.CALL and one[3] >= 0 else None
    built = function.definitions[config[4]] if config is not None and config[0] == op.ITEM else None
    return built is not None and built[0] == op.BUILD and len(built) > 6


def _takers(models: Models) -> dict[str, list[Selector]]:
    found: dict[str, list[Selector]] = {}
    for name, row in models.calls.items():
        stream, is_explicit = row.get("stream"), row.library in models.marked("explicit")
        if is_explicit and isinstance(stream, Selector) and row.effect not in ("synchronize", "query"):
            found.setdefault(name.rpartition(".")[2], []).append(stream)
    return found


def _making(models: Models) -> frozenset[str]:
    """The last parts of the names of functions that make streams or switch them."""
    of_pool = (name for name, rows in models.with_effect("stream_of").items() if any(row.get("which") in ("pool", "ptds") for row in rows))
    return frozenset(of_pool).union(*(models.with_effect(effect) for effect in ("stream", "scope", "set_stream")))

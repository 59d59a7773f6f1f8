"""The properties with the programs that each is held against; run by the tests for a moment, by ``benchmarks/fuzz.py`` for hours."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import hypothesis
from fuzzing import cuda_programs, properties, python_programs, rewriting, seeds
from fuzzing.mutations import Mutation, mutated, mutations
from fuzzing.properties import spent
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from rename import File

from streamlint.support.reading import language_of

Programs = st.SearchStrategy[tuple[File, ...]]
SUFFIXES = {"python": "a.py", "cuda": "a.cu", "cython": "a.pyx"}


def python() -> Programs:
    return python_programs.modules().map(lambda text: (File("a.py", "python", text),))


def cuda() -> Programs:
    return cuda_programs.sources().map(lambda text: (File("a.cu", "cuda", text),))


def generated() -> Programs:
    """Python, C++, or both with C++ that Python calls."""
    return st.one_of(python(), cuda(), st.tuples(python(), cuda()).map(lambda both: both[0] + both[1]))


def written() -> Programs:
    """Code that people wrote."""
    return st.sampled_from(seeds.programs())


def programs() -> Programs:
    return st.one_of(generated(), written())


def choices() -> st.SearchStrategy[rewriting.Choice]:
    """Everywhere, or at a few places."""
    places = st.one_of(st.just(()), st.lists(st.integers(0, 5_000), min_size=1, max_size=4).map(tuple))
    return st.builds(rewriting.Choice, places, st.lists(st.integers(0, 19), min_size=1, max_size=7).map(tuple))


def _survives(files: Sequence[File]) -> None:
    properties.survives(files)


def _survives_changed(files: Sequence[File], others: Sequence[File], which: int, changes: list[Mutation]) -> None:
    file, other = files[which % len(files)], others[which % len(others)]
    name = file.name.rpartition("/")[2]
    properties.survives_bytes(mutated(file.text, changes, other.text), name if language_of(name) else SUFFIXES[file.language])


def _survives_among(files: Sequence[File], others: Sequence[File], which: int, changes: list[Mutation]) -> None:
    """One file of several is changed: what is wrong with it must not reach the others."""
    at = which % len(files)
    text = mutated(files[at].text, changes, others[0].text).decode("utf-8", "replace")
    properties.survives([File(f.name, f.language, text) if number == at else f for number, f in enumerate(files)])


def _fixes(files: Sequence[File], which: int, changes: list[Mutation], unsafe: bool) -> None:
    file = files[which % len(files)]
    whole = [(6 + kind % 4, where, much, what) for kind, where, much, what in changes]  # lines, so that most still parse
    text = mutated(file.text, whole[:2] if which % 3 == 0 else [], "").decode()
    properties.fixes_settle(File(SUFFIXES[file.language], file.language, text), unsafe)


def _order(files: Sequence[File], more: Sequence[File], order: Sequence[int]) -> None:
    apart = {file.name: file for file in (*(File("z_" + f.name, f.language, f.text) for f in more if "/" not in f.name), *files)}
    found = list(apart.values())
    properties.order_is_nothing(found, sorted(range(len(found)), key=lambda index: (order[index % len(order)], -index)))


@dataclass
class Property:
    """A check with the strategies of its arguments."""

    name: str
    strategies: tuple[st.SearchStrategy[object], ...]
    check: Callable[..., object]
    weight: float = 1.0  # how much of the time it gets


def all_properties(texts: Programs | None = None) -> dict[str, Property]:
    """By name. ``texts`` are what is changed at random, where not the tests' own."""
    seed = texts or written()
    number = st.integers(0, 1 << 16)
    found = [
        Property("python", (python(),), _survives),
        Property("cuda", (cuda(),), _survives),
        Property("bytes", (seed, seed, number, mutations()), _survives_changed, 2.0),
        Property("among", (written(), written(), number, mutations()), _survives_among),
        Property("lines", (programs(), st.just(rewriting.reformat), choices()), properties.same_findings),
        Property("joined", (st.one_of(cuda(), written()), st.just(rewriting.join_lines), choices()), properties.same_findings, 0.5),
        Property("names", (generated(), st.just(rewriting.rename), choices()), properties.same_findings),
        Property("dead", (programs(), st.just(rewriting.add_dead), choices()), properties.same_findings),
        Property("unknown", (programs(), st.just(rewriting.add_unknown), choices()), properties.no_new_findings),
        Property("fixes", (programs(), number, mutations(2), st.booleans()), _fixes, 1.5),
        Property("order", (programs(), written(), st.lists(number, min_size=2, max_size=5)), _order, 0.5),
    ]
    return {one.name: one for one in found}


@dataclass
class Outcome:
    """What came of a property: how often it was tried, and the smallest example that was found against it."""

    tried: int = 0
    seconds: float = 0.0
    against: BaseException | None = None
    example: tuple[object, ...] = ()
    passed_over: dict[str, int] = field(default_factory=dict)


def hold(
    one: Property,
    seconds: float,
    examples: int,
    *,
    least: int = 0,
    seed: int | None = None,
    known: Callable[[BaseException], bool] | None = None,
) -> Outcome:
    """Try a property for some processor time, and with ``least`` examples; what is found is made small for half a minute at most.

    Without a ``seed`` the examples are always the same. Failures that are ``known`` are passed over.
    """
    outcome = Outcome()
    begun = spent()
    failing: dict[str, BaseException] = {}
    first = 0.0

    def check(arguments: tuple[object, ...]) -> None:
        nonlocal first
        key = hashlib.sha256(repr(arguments).encode("utf-8", "surrogatepass")).hexdigest()
        if key in failing:
            raise failing[key]
        if (spent() - begun > seconds and outcome.tried >= least and not failing) or (failing and spent() - first > 30):
            return
        outcome.tried += 1
        try:
            one.check(*arguments)
        except Exception as error:
            if known is not None and known(error):
                return
            first = first if failing else spent()
            failing[key] = error
            outcome.against, outcome.example = error, arguments
            raise

    run = settings(
        max_examples=examples,
        derandomize=seed is None,
        database=None,
        deadline=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
        report_multiple_bugs=False,
    )(given(st.tuples(*one.strategies))(check))
    try:
        (hypothesis.seed(seed)(run) if seed is not None else run)()
    except Exception as error:
        outcome.against = outcome.against or error
    outcome.seconds = spent() - begun
    return outcome

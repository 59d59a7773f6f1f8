"""A child that needs no GPU: it answers what the model says, by a table of facts of its own."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable

from streamlint.litmus.predict import Strengths, observed, strengths
from streamlint.litmus.program import Program, parse
from streamlint.verify.watchdog import Message

# What a child says instead: a message, ``None`` (it closed its output), ``TimeoutError`` (silence), or ``...`` (what it would have said).
Odd = Callable[["FakeGpu", Program], object]


class FakeGpu:
    """One child. ``asked`` are the programs that it was given."""

    def __init__(self, table: Strengths, *, peers: bool, odd: Odd, begin: tuple[object, ...]) -> None:
        self.table, self.odd = table, odd
        ready = {"event": "ready", "peers": peers, "gpu": "Fake", "cuda_runtime": "13.0"}
        self.answers: deque[object] = deque(begin or (ready, {"event": "warm"}))
        self.asked: list[Program] = []
        self.times: Counter[str] = Counter()
        self.killed = False

    def ask(self, request: Message) -> None:
        program = parse(request["program"])
        self.asked.append(program)
        self.times[str(program)] += 1
        said = self.odd(self, program)
        self.answers.append(saw(*observed(program, self.table)) if said is ... else said)

    def read(self, seconds: float) -> Message | None:
        answer = self.answers.popleft()
        if answer is TimeoutError:
            raise TimeoutError
        return answer  # type: ignore[return-value]

    def kill(self) -> None:
        self.killed = True

    def epitaph(self) -> str:
        return "the child died of SIGSEGV"


class Machine:
    """Starts children; ``children`` are those so far. ``begin`` is what they say before they are asked, ``turned`` their wrong fact."""

    def __init__(
        self, turned: str = "", *, peers: bool = False, odd: Odd = lambda _gpu, _program: ..., begin: tuple[object, ...] = ()
    ) -> None:
        self.table, self.peers, self.odd, self.begin = strengths(turned), peers, odd, begin
        self.children: list[FakeGpu] = []

    def __call__(self) -> FakeGpu:
        self.children.append(FakeGpu(self.table, peers=self.peers, odd=self.odd, begin=self.begin))
        return self.children[-1]

    @property
    def asked(self) -> list[Program]:
        return [program for child in self.children for program in child.asked]


def saw(*words: str, problem: str = "", hung: bool = False) -> Message:
    return {"event": "seen", "words": sorted(words), "problem": problem, "hung": hung}

"""A function entered from somewhere: its registers as nodes, and the arguments of a call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from streamlint.facts.values.nodes import Node

if TYPE_CHECKING:
    from streamlint.facts.code.functions import Function
    from streamlint.facts.code.objects import Object, Site


class Frame:
    """A function with what is known of how it was entered.

    ``outer`` is the frame in which the function was defined, if it uses variables from there; ``receiver`` the object that a method is
    called on; ``arguments`` those of the one call that is looked at. Without them the frame stands for all calls.
    """

    __slots__ = ("arguments", "cells", "depth", "function", "outer", "receiver", "registers", "result", "yielded")

    def __init__(self, function: Function, outer: Frame | None, receiver: Object | None, arguments: Arguments | None) -> None:
        self.function = function
        self.outer = outer
        self.receiver = receiver
        self.arguments = arguments
        entered = 0 if arguments is None or arguments.frame is None else arguments.frame.depth + 1
        self.depth: int = max(entered, outer.depth if outer is not None else 0)  # calls behind one another that are distinguished
        self.registers: dict[int, Node] = {}
        self.cells: dict[str, Node] = {}
        self.result: Node | None = None
        self.yielded: Node | None = None

    def __repr__(self) -> str:
        return f"<frame of {self.function.name}, depth {self.depth}>"

    def is_entered(self, function: Function) -> bool:
        """Whether a function is entered on the way to this frame."""
        frame: Frame | None = self
        while frame is not None:
            if frame.function is function:
                return True
            frame = frame.arguments.frame if frame.arguments is not None else None
        return False


class Arguments:
    """The arguments of one call: positions, what ``*x`` spreads behind them, keywords, and what ``**x`` spreads.

    ``joint`` is set where they are those of many calls together; ``is_all`` is not where others may follow: of a partial object.
    """

    __slots__ = ("double", "frame", "is_all", "joint", "keywords", "positional", "site", "starred")

    def __init__(self, frame: Frame | None, site: Site | None, joint: Joint | None = None) -> None:
        self.frame = frame
        self.site = site
        self.joint = joint
        self.is_all = True
        self.positional: list[Node] = []
        self.starred: list[Node] = []
        self.keywords: dict[str, Node] = {}
        self.double: list[Node] = []

    @property
    def all(self) -> list[Node]:
        """All nodes, in no order that matters."""
        return [*self.positional, *self.starred, *self.keywords.values(), *self.double]

    @property
    def shape(self) -> tuple[object, ...]:
        """How many there are, and by which names."""
        return len(self.positional), bool(self.starred), tuple(sorted(self.keywords)), bool(self.double)

    def behind(self, before: Arguments, one: Callable[[Node], Node]) -> Arguments:
        """These arguments behind those of a ``functools.partial``; ``one`` makes an iterable that gives what a node holds."""
        found = Arguments(self.frame, self.site, self.joint)
        found.positional = [*before.positional, *(() if before.starred else self.positional)]
        found.starred = [*before.starred, *(map(one, self.positional) if before.starred else ()), *self.starred]
        found.keywords = {**before.keywords, **self.keywords}
        found.double = [*before.double, *self.double]
        return found


class Joint(Arguments):
    """The arguments of all calls of one of many functions that hand over as many. ``entered`` are the functions that they enter,
    ``within`` what is called of those that stand for many in turn, ``calls`` the arguments of each call."""

    __slots__ = ("calls", "entered", "result", "within")

    def __init__(self, like: Arguments) -> None:
        super().__init__(None, None, self)
        self.positional = [Node(None) for _ in like.positional]
        self.starred = [Node(None)] if like.starred else []
        self.keywords = {name: Node(None) for name in like.keywords}
        self.double = [Node(None)] if like.double else []
        self.result = Node(None)
        self.entered: dict[Function, None] = {}
        self.within: dict[Joint, None] = {}
        self.calls: dict[Arguments, None] = {}

    def take(self, arguments: Arguments) -> Iterator[tuple[Node, Node]]:
        """One call more: its nodes, each with that which takes what it holds."""
        self.calls[arguments] = None
        yield from zip(arguments.positional, self.positional, strict=True)
        yield from ((node, self.keywords[name]) for name, node in arguments.keywords.items())
        yield from ((node, self.starred[0]) for node in arguments.starred)
        yield from ((node, self.double[0]) for node in arguments.double)

    def below(self) -> list[Joint]:
        """This one, and those of what stands for many in turn."""
        found = {self: None}
        waiting = [self]
        while waiting:
            for one in waiting.pop().within:
                if one not in found:
                    found[one] = None
                    waiting.append(one)
        return list(found)

    def places(self) -> Iterator[Arguments]:
        """The arguments of the calls in the program that lead here."""
        seen, waiting = {self}, [self]
        while waiting:
            for one in waiting.pop().calls:
                if one.joint is None:
                    yield one
                elif one.joint not in seen:
                    seen.add(one.joint)
                    waiting.append(one.joint)

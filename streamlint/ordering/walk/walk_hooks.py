"""What each kind of walk says for itself: which actions mean something, and where its paths end."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.facts.code.functions import Function
from streamlint.ir import Instruction
from streamlint.ir import opcodes as op
from streamlint.ordering.paths.conditions import Conditions
from streamlint.ordering.paths.fixed_names import FixedNames
from streamlint.ordering.paths.meanwhile import Meanwhile
from streamlint.ordering.paths.states import Answer, State
from streamlint.ordering.paths.walk_names import WalkNames
from streamlint.ordering.places.flow import Tracked, is_at, leads_to
from streamlint.ordering.places.places import Place
from streamlint.ordering.streams.streams import Currents
from streamlint.transfer.actions import Action, Asked, Read, Synchronized, Touched, Viewed
from streamlint.transfer.transfer import Transfer

_LOUD = frozenset({op.YIELD, op.EXIT})


class Hooks(WalkNames):
    """A walk that orders nothing and ends nowhere. ``ordering`` are the actions for which calls are entered."""

    ordering: tuple[type[object], ...] = (Synchronized,)
    meets_memory = False
    """Whether only what touches memory that is tracked can matter: a call that can name none of it orders, or does nothing."""
    passive: tuple[type[object], ...] = (Read, Viewed, Touched)
    """Actions that mean nothing where they touch nothing of what is tracked, unless they wait."""
    hooked: frozenset[int] = frozenset()
    """Opcodes that may mean something for what they do not touch."""
    forgets = False
    """Whether memory in registers that nothing names any more is let go."""
    forgets_rounds = False
    """Whether that is so as well for parts of it and for events, and before a register is made anew."""
    resumes = False
    """Whether generators go on where they were left."""
    ends_alike = False
    """Whether it does not matter where a function returns that gives back nothing of what is tracked."""
    renames = False
    """Whether rounds of loops rename the indices on the way to what is tracked."""

    def __init__(self, transfer: Transfer) -> None:
        super().__init__(transfer)
        self.conditions = transfer.one_of(Conditions, transfer)
        self.fixed = transfer.one_of(FixedNames, transfer)
        self.currents = transfer.one_of(Currents, transfer)
        self.meanwhile = transfer.one_of(Meanwhile, transfer)

    def has(self, state: State, kind: str, register: int) -> bool:
        """Whether a register holds something tracked of a kind."""
        return register >= 0 and is_at(state.tracked, self.places.names(state.frame.function, register), kind)

    def leads(self, state: State, kind: str, register: int) -> bool:
        """Whether a register holds something tracked of a kind, or an object or container that leads to it."""
        return register >= 0 and leads_to(state.tracked, self.places.names(state.frame.function, register), kind)

    def actions(self, function: Function, one: Instruction) -> tuple[Action, ...]:
        """What an instruction does, in the order in which the judge hears of it."""
        return self.transfer.of(function, one)

    def heard(self, state: State, one: Instruction) -> tuple[Action, ...]:
        """The actions of an instruction on a path that the judge hears of."""
        return self.actions(state.frame.function, one)

    def is_quiet(self, function: Function, one: Instruction) -> bool:
        """Whether an instruction means nothing where it touches nothing of what is tracked."""
        if one[0] in _LOUD or self.is_hooked(function, one):
            return False
        if any(edge.is_followed and not self.is_idle(function, one, edge.callee) for edge in self.transfer.edges(function, one)):
            return False
        if self.meanwhile.lets_go(function, one) or self.meanwhile.wakes(function, one):
            return False
        return all(self.is_passive(function, action) for action in self.actions(function, one))

    def is_hooked(self, function: Function, one: Instruction) -> bool:
        """Whether an instruction may mean something for what it does not touch."""
        return one[0] in self.hooked

    def is_idle(self, function: Function, one: Instruction, callee: Function) -> bool:
        """Whether a function that an instruction enters means nothing where it can name nothing of what is tracked."""
        return False

    def touches(self, function: Function, one: Instruction) -> Iterator[Place]:
        """The places that an instruction touches besides those of its operands."""
        yield from ()

    def is_passive(self, function: Function, action: Action) -> bool:
        """Whether an action means nothing where it touches nothing of what is tracked."""
        return isinstance(action, self.passive) and not (isinstance(action, Read) and action.waits and self.may_hold(function, action))

    def may_hold(self, function: Function, action: Read) -> bool:
        """Whether the host may wait for the value that it reads."""
        return True

    def names_of(self, function: Function, register: int) -> tuple[Place, ...]:
        """All places that a path may take for that of a register."""
        return self.places.names(function, register) if register >= 0 else ()

    def is_order(self, state: State, one: Instruction, action: Action) -> bool:
        """Whether an action orders the operation, or may do so in unknown code."""
        return self.orders(state, one, action)

    def redone(self, state: State, one: Instruction) -> bool:
        """Whether a path ends where it has come back to the operation that it follows, which is done anew."""
        return True

    def forgotten(self, state: State, one: Instruction) -> State:
        """The state without names that an instruction ends."""
        return state

    def over(self, state: State) -> bool:
        """Whether a path can meet nothing any more."""
        return False

    def passed(self, state: State, one: Instruction) -> bool:
        """Whether a path ends with an instruction, whatever it does."""
        return False

    def may_go_up(self, state: State, caller: Function, call: Instruction) -> bool:
        """Whether a path may come from a call."""
        return True

    def raised(self, state: State, call: Instruction) -> State:
        """A state that went up to a caller, behind a call."""
        return state

    def may_hold_up(self, action: Action) -> bool:
        """Whether the host may wait in an action."""
        return isinstance(action, self.ordering) or (isinstance(action, Read) and action.waits)

    def arrive(self, state: State, one: Instruction) -> Answer:
        """What an instruction means for the pending operation before its actions do."""
        return None

    def judge(self, state: State, one: Instruction, action: Action) -> Answer:
        """What an action means for the pending operation."""
        return None

    def left(self, state: State, register: int) -> None:
        """A path leaves the program: its function, which no known code calls, gives back what a register holds."""

    def is_bounded(self, state: State, condition: int) -> bool:
        """Whether a loop waits for what is under way by its own measure: that it is entered is taken for granted."""
        return False

    def done_where(self, state: State, condition: int) -> bool | None:
        """The truth of a condition that says that the operation is done; None where it says nothing of it."""
        return None

    def derived(self, state: State, one: Instruction) -> frozenset[Tracked]:
        """What else is tracked behind a comparison or negation: whether it says that the operation is done."""
        return frozenset()

    def may_be_order(self, action: Action) -> bool:
        """Whether an action orders anything on any path (`orders`)."""
        return not isinstance(action, Asked)

    def orders(self, state: State, one: Instruction, action: Action) -> bool:
        """Whether an action would order the operation that is followed."""
        raise NotImplementedError

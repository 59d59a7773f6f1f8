"""Which memory a register means: the variable behind pointers, offsets, views and accessors."""

from __future__ import annotations

from streamlint.facts.functions import Function
from streamlint.facts.objects import Constant, Scalar
from streamlint.ir import opcodes as op
from streamlint.ordering.choices import behind_copies
from streamlint.ordering.places import ADDRESS, POINTEE, Key, Place, Places
from streamlint.transfer.actions import Viewed
from streamlint.transfer.transfer import Transfer

_ACCESSORS = frozenset({"data_ptr", "data", "get", "begin", "end", "ptr", "mutable_data_ptr", "const_data_ptr"})


class Storages:
    """Names memory by the variables that lead to it."""

    def __init__(self, transfer: Transfer, places: Places) -> None:
        self.transfer = transfer
        self.facts = transfer.facts
        self.places = places

    def of(self, function: Function, register: int) -> Place | None:
        """The variable that holds the memory of a register, or a pointer to it; None of a number."""
        for _ in range(12):
            register = behind_copies(function, register)
            one = function.definitions[register] if register >= 0 else None
            if one is None:
                return None
            inner = self._inside(function, register)
            if inner is None:
                break
            register = inner
        if self._is_number(function, register):
            return None
        return plain(self.places.of(function, register))

    def _inside(self, function: Function, register: int) -> int | None:
        """The register of what an offset, a view or an accessor is of."""
        one = function.definitions[register]
        assert one is not None
        if function.is_cpp and one[0] in (op.BINARY, op.INPLACE) and function.text(one[3])[:1] in ("+", "-"):
            return next((each for each in one[4:6] if not self._is_number(function, each)), None)
        if one[0] == op.INVOKE and function.text(one[4]) in _ACCESSORS:
            return one[3]
        if one[0] in (op.CALL, op.INVOKE, op.ITEM) and not (one[0] == op.ITEM and function.is_cpp):
            viewed = (action.register for action in self.transfer.of(function, one) if isinstance(action, Viewed))
            return next(viewed, None)
        return None

    def _is_number(self, function: Function, register: int) -> bool:
        values = list(self.facts.values(function, register).values) if register >= 0 else []
        return bool(values) and all(isinstance(value, (Scalar, Constant)) for value in values)


def plain(place: Place) -> Place:
    """A place without the steps between a pointer and what it points to."""
    path: tuple[Key, ...] = tuple(key for key in place.path if key not in (ADDRESS, POINTEE))
    return Place(place.root, path)

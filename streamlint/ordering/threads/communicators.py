"""Which communicator a collective is one of: by where it was made, or the default one."""

from __future__ import annotations

from functools import cached_property

from streamlint.facts.code.objects import Constant, External, LibraryObject, Site
from streamlint.models import Row
from streamlint.transfer.carried import Carriers
from streamlint.transfer.modelled import ModelledCall
from streamlint.transfer.transfer import Transfer
from streamlint.transfer.uses import Uses
from streamlint.waits.entered import Context
from streamlint.waits.operands import constants_of

WORLD = "world"
EFFECTS = frozenset({"collective", "launch"})
Communicator = frozenset[object]
"""Where it may have been made; `WORLD` is the default one."""


def has_communicator(row: Row) -> bool:
    """Whether calls of a row are collectives of a communicator."""
    return row.get("communicator") is not None


class Communicators:
    """The communicators of collectives."""

    def __init__(self, transfer: Transfer) -> None:
        self.transfer = transfer
        self.uses = Uses(transfer)
        self.carriers = transfer.one_of(Carriers, transfer)

    def of(self, call: ModelledCall, context: Context = ()) -> Communicator | None:
        """The communicator of a collective, in functions that calls have entered; None where nobody knows it, or where it is of the CPU."""
        register = call.one("communicator")
        if register is None:
            return frozenset({WORLD})
        found: set[object] = set()
        is_cpp = call.function.is_cpp
        for value in self.carriers.values(call.function, register, context):
            if isinstance(value, LibraryObject) and value.kind == "communicator" and value.site is not None:
                named = self._named(value.site)
                if named is None:
                    return None
                found.add(named)
            elif self._is_default(value) and not is_cpp:
                found.add(WORLD)
            elif not (is_cpp and isinstance(value, LibraryObject)):  # C++: a variable that is declared, and made later
                return None
        return frozenset(found) if found and not any(self._backends(named) == "host" for named in found) else None

    def are_apart(self, first: Communicator, second: Communicator) -> bool:
        """Whether two communicators are shown to be two."""
        return first.isdisjoint(second)

    def is_one(self, communicator: Communicator) -> bool:
        """Whether a communicator is the same one wherever its name stands: no loop makes several in one place."""
        (made, *others) = communicator
        if others or not isinstance(made, Site):
            return not others
        return not made.function.is_repeated(made.instruction)

    def is_on_device(self, call: ModelledCall, communicator: Communicator) -> bool:
        """Whether a collective is shown to be work on a device: by its tensors, or by the backend of its group."""
        if call.row.effect == "launch" or any(self._backends(made) == "device" for made in communicator):
            return True
        written = [register for register in call.all("writes") if register >= 0]
        if any(self.uses.on_device(call.function, register) for register in written):
            return True
        return self._default == "device" and not any(call.is_on_host(register) for register in written)

    def _named(self, site: Site) -> object:
        """What tells a communicator from others: where it is made, or the name that it is asked for by; None where that is open."""
        for call in self.transfer.modelled(*site):
            if call.row.effect == "communicator" and call.row.get("named") is not None:
                register = call.one("named")
                held = list(call.values(register)) if register is not None else []
                return ("named", held[0].value) if len(held) == 1 and isinstance(held[0], Constant) else None
        return site

    def may_be_on_device(self, call: ModelledCall, communicator: Communicator) -> bool:
        """Whether nothing shows that a collective works on the CPU."""
        if call.row.effect == "launch":
            return True
        is_of_host = self._default == "host" and WORLD in communicator
        return not is_of_host and not any(call.is_on_host(register) for register in call.all("writes") if register >= 0)

    def _is_default(self, value: object) -> bool:
        if isinstance(value, External):
            return self.transfer.facts.models.constants.get(value.name) == "absent"
        return isinstance(value, Constant) and value.value is None

    def _backends(self, made: object) -> str:
        """Where the collectives of a communicator work, by the name of its backend: ``device``, ``host``; "" where it has none."""
        if not isinstance(made, Site):
            return ""
        for call in self.transfer.modelled(made.function, made.instruction):
            if call.row.effect == "communicator":
                return self._backend(call)
        return ""

    def _backend(self, call: ModelledCall) -> str:
        register = call.one("backend")
        named = constants_of(self.transfer.facts, call.function, register) if register is not None else set()
        wanted = call.row.get("on_devices")
        on_devices = (wanted,) if isinstance(wanted, str) else wanted if isinstance(wanted, tuple) else ()
        if not named:
            return ""
        return "device" if all(any(str(each) in name for each in on_devices) for name in named) else "host"

    @cached_property
    def _default(self) -> str:
        """Where the collectives of the default group work, by all calls of the program that make it."""
        calls = self.transfer.sites({"communicator"}, where=lambda row: row.get("type") is None)
        said = {self._backend(call) for call in calls}
        return said.pop() if len(said) == 1 else ""

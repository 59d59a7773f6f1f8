"""Methods that unknown callers call: nobody says in which order."""

from __future__ import annotations

from streamlint.facts.functions import Function
from streamlint.transfer.transfer import Transfer


def open_methods(transfer: Transfer, function: Function) -> list[Function]:
    """The methods of a class that no known code calls, if a function is one of them."""
    owner = function.owner if function.method is function and function.has_receiver and not function.is_cpp else None
    methods = [each for named in owner.methods.values() for each in named] if owner is not None else []
    found = [each for each in methods if each.has_receiver and each.code.name != "__init__" and not transfer.callers(each)]
    return found if function in found else []

"""A wait of the host, as the other modules of the package pass it on."""

from __future__ import annotations

from typing import NamedTuple

from streamlint.facts.code.functions import Function
from streamlint.ir import Instruction

READ, CAST, SIZE, FETCH, UPLOAD, NUMBER = "read", "cast", "size", "fetch", "upload", "number"
DEVICE, CACHE, STEP = "device", "cache", "step"
OF_LIST = "indexing"
"""The name of the wait of a list that is asked for the element at a number of the device."""
"""What a wait is for: the value itself; a number that may already be one (``float(x)``); a shape of the result; what a call looks at by
itself; an upload from pageable memory; an argument that must be a number; the whole device; the cache of an allocator; a step that reads
what it goes by, before it works."""

LIST = "list"
"""The type of what a library gives as a list of numbers."""


class Wait(NamedTuple):
    """An instruction at which the host waits for the device.

    ``value`` is the register of the value that is read or uploaded, NONE where there is none; ``name`` is the API's dotted name;
    ``instead`` says what gives the same without a wait. ``is_optional`` says that an option of the program may leave the wait out.
    """

    function: Function
    instruction: Instruction
    what: str
    name: str
    value: int
    instead: str = ""
    is_optional: bool = False

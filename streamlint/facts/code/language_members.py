"""The names of members that values of the language and its library have."""

from __future__ import annotations

import collections
import io
import threading

_OF_QUEUES = frozenset("empty full get get_nowait join put put_nowait qsize task_done".split())  # to import them costs 8 ms
_OF_CONTAINERS = _OF_QUEUES.union(*map(dir, (list, dict, set, tuple, collections.deque, collections.OrderedDict)))
_OF_SCALARS = frozenset(name for kind in (str, bytes, int, float, complex, bool, slice) for name in dir(kind))
"""What values of the language have; they have no other attribute."""
LANGUAGE_MEMBERS = (
    _OF_CONTAINERS
    | _OF_SCALARS
    | frozenset(name for kind in (threading.Thread, threading.Event, threading.Condition, io.BufferedRandom) for name in dir(kind))
)
"""Names of members that objects of the language and its library have."""

"""Classes that are taken where another one cannot be: ``Pinned if can_pin() else Plain``. That they pin nothing is their purpose."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint import program as p
from streamlint.interpreter.index import File, walk_module
from streamlint.interpreter.notes import remembered

_PINS = ("pin_memory", "_pinned", "pinned_", "hostAlloc", "HostAlloc", "HostRegister")


@remembered(64)
def stand_ins(file: File) -> frozenset[str]:
    """The qualified names of those classes of a file that hold no pinned memory, where the other one does."""
    found: set[str] = set()
    for one, other in _choices(file):
        held = [file.module.classes.get(name) for name in (one, other)]
        pins = [definition is not None and _pins(file, definition) for definition in held]
        found |= {
            definition.qualname for definition, own, twin in zip(held, pins, pins[::-1], strict=True) if definition and twin and not own
        }
    return frozenset(found)


def _pins(file: File, definition: p.Class) -> bool:
    methods = (method for overloads in definition.methods.values() for method in overloads)
    return any(word in file.relevance.text(method) for method in methods for word in _PINS)


def _choices(file: File) -> Iterator[tuple[str, str]]:
    """Pairs of names of which a condition takes one."""
    for node in walk_module(file.module):
        if isinstance(node, p.Conditional) and isinstance(node.then, p.Name) and isinstance(node.otherwise, p.Name):
            yield node.then.id, node.otherwise.id
        elif isinstance(node, p.If) and len(node.then) == len(node.otherwise) == 1:
            values = [arm.value.id for arm in (*node.then, *node.otherwise) if isinstance(arm, p.Assign) and isinstance(arm.value, p.Name)]
            if len(values) == 2:
                yield values[0], values[1]

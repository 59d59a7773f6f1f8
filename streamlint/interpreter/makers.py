"""What a file's own code makes its objects with: the classes of the arguments that all its constructions give."""

from __future__ import annotations

from streamlint import program as p
from streamlint.interpreter.at_hand import class_at_hand, class_of_place
from streamlint.interpreter.index import File, walk_module
from streamlint.interpreter.notes import remembered


def class_given(maker: p.Function, owner: p.Class, file: File, param: p.Param) -> tuple[p.Class, File] | None:
    """The one class at hand of whose objects every call of a constructor in its file gives one for a parameter; None where it differs."""
    position = next((n for n, held in enumerate(maker.params[1:]) if held is param), None)
    given: set[int] = set()
    found: tuple[p.Class, File] | None = None
    for call in _constructions(file).get(id(owner), ()):
        value = next((arg.value for arg in call.args if arg.keyword == param.name), None)
        if value is None and position is not None and position < len(call.args) and not _is_open(call, position):
            value = call.args[position].value
        found = _class_of(value, file) if value is not None else None
        if found is None:
            return None
        given.add(id(found[0]))
    return found if len(given) == 1 else None


def classes_given(owner: p.Class, file: File) -> list[str]:
    """The names of the classes whose objects a constructor is given by its file."""
    name = owner.name.rpartition(".")[2]
    text = file.module.text
    if file.is_cuda or text.count(f"{name}(") <= text.count(f"class {name}("):
        return []
    plain = [(maker, param) for maker in owner.methods.get("__init__", ()) for param in maker.params[1:] if param.annotation is None]
    held = [class_given(maker, owner, file, param) for maker, param in plain]
    return [one[0].name.rpartition(".")[2] for one in held if one is not None]


def _class_of(value: p.Expression, file: File) -> tuple[p.Class, File] | None:
    return class_at_hand(value.function, file) if isinstance(value, p.Call) else class_of_place(value, file)


def _is_open(call: p.Call, position: int) -> bool:
    """Whether an argument by its place may be another one's."""
    return any(arg.keyword or isinstance(arg.value, p.Starred) for arg in call.args[: position + 1])


@remembered(64)
def _constructions(file: File) -> dict[int, list[p.Call]]:
    """The calls that make objects of classes of this file, by class."""
    found: dict[int, list[p.Call]] = {}
    for node in walk_module(file.module):
        if isinstance(node, p.Call) and isinstance(node.function, p.Name) and node.function.id in file.classes:
            found.setdefault(id(file.classes[node.function.id]), []).append(node)
    return found

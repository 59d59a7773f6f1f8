"""Sizes: how many bytes a new buffer has, and whether it is small, from its shape, its data or what it is like."""

from __future__ import annotations

import re

from streamlint.cuda_model import STAGED_BYTES
from streamlint.interpreter.cpp_types import SIZES
from streamlint.interpreter.effects import Call
from streamlint.interpreter.effects.devices import looks_like_dtype
from streamlint.interpreter.values import Buffer, Const, Series, Storage, Value
from streamlint.operations import Memory
from streamlint.record import replace

_WHOLE = re.compile(r"(?:^|\W)(?:u?int(?:16|32|64)?|intp|long|short|bool_?)$")  # in 8 bits stand pictures and quantized weights
_OF_MASKS = re.compile(r"(?:^|\W)bool_?$")
_OF_ARRAY = re.compile(r"\b(?:numel|nbytes)\(|unchecked\b.*\bsize\(")
_A_FEW = 16
_WORD_BYTES = 8  # the widest element that libraries make by default


def is_small(nbytes: int | None) -> bool:
    return nbytes is not None and nbytes <= STAGED_BYTES


def measure(call: Call, storage: Storage) -> None:
    shape = call.values("shape")
    if call.row.get("data") is not None and isinstance(call.value("data"), Series):
        shape = []  # ``torch.LongTensor(labels)`` takes either
    if shape:
        count = elements(shape)
        if count is not None:
            storage.nbytes = count * _item_bytes(call)
            storage.small = is_small(storage.nbytes)
        elif len(shape) == 1 and shape[0].term.startswith("len("):
            storage.small = True  # one number for each item of a container of Python's: requests, prompts, paths
        else:
            storage.counted = call.flag("counts") or _counts(call, shape)
        return
    if call.row.get("like") is not None:
        like = call.value("like")
        if isinstance(like, Buffer) and call.row.get("data") is None:
            storage.nbytes, storage.small, storage.counted = like.storage.nbytes, like.storage.small, like.storage.counted
            return
    if call.row.get("data") is not None:
        data = call.value("data")
        storage.nbytes, storage.small = _of_data(data)
        counted = becomes_whole(call) or isinstance(data, Series) or (not isinstance(data, Buffer) and _is_whole(call))
        storage.counted = not storage.small and counted
    elif call.text("type") == "torch.Tensor" and call.row.get("shape") is not None and not call.arguments.open:
        storage.nbytes, storage.small = _WORD_BYTES, True  # torch.empty(()) and friends


def _counts(call: Call, shape: list[Value]) -> bool:
    """Whether a shape has one extent that is not known, a few numbers along the others, and whole numbers in it; or is a mask's."""
    dtype = call.value("dtype")
    if dtype is not None and _OF_MASKS.search(dtype.term) is not None:
        return True  # a byte for each element: a thousand by a thousand are staged, and nothing shows that there are more
    if not _is_whole(call):
        return False
    extents = [item for value in shape for item in (value.items if isinstance(value, Series) and value.items is not None else [value])]
    known = elements([value for value in extents if isinstance(value, Const)])
    return known is not None and known <= _A_FEW and sum(not isinstance(value, Const) for value in extents) == 1


def _is_whole(call: Call) -> bool:
    dtype = call.value("dtype")
    return dtype is not None and _WHOLE.search(dtype.term) is not None


def becomes_whole(call: Call) -> bool:
    """Whether what comes of a call are whole numbers: indices by its nature, or by the type asked for, outside of a loop over data."""
    if call.flag("counts"):
        return True
    if any(loop.kind == "data" for loop in call.run.context.loops):
        return False  # the labels of each pixel are whole numbers as well
    named = call.flag("cast") and _WHOLE.search(call.name) is not None
    return named or any(looks_like_dtype(value) and _WHOLE.search(value.term) for value in call.arguments.all())


def bytes_told(value: Value | None) -> int | None:
    """A size in bytes: a number, or numbers times the sizes of C++ types (``1024 * sizeof(float)``)."""
    if isinstance(value, Const):
        return value.value if isinstance(value.value, int) else None
    total = 1
    for factor in re.split(r" \* ", value.term.replace("(", " ").replace(")", " ").strip()) if value is not None else ():
        words = factor.split()
        width = SIZES.get(" ".join(words[1:]).removeprefix("std::")) if words[:1] == ["sizeof"] else None
        if width is None and (len(words) != 1 or not words[0].isdecimal()):
            return None
        total *= width or int(words[0])
    return total if value is not None else None


def beginning(buffer: Buffer | None, size: Value | None) -> Buffer | None:
    """The bytes that a copy of ``size`` reaches, where more of them were allocated, or others, for all that is known."""
    if buffer is None or buffer.part or size is None or buffer.storage.extent == size.term:
        return buffer
    told = bytes_told(size)
    if told is not None and buffer.storage.nbytes is not None and told >= buffer.storage.nbytes:
        return buffer
    return replace(buffer, part=(("b", size.term),))


def bytes_held(buffer: Buffer | None) -> int | None:
    """The bytes of a whole allocation, as far as known: who copies so many of them as nothing tells is taken to copy what it holds."""
    beginning_only = buffer is not None and all(axis[0] == "b" for axis in buffer.part)
    return buffer.storage.nbytes if buffer is not None and beginning_only else None


def resized(storage: Storage, count: Value | None) -> None:
    """A container has so many elements from now on."""
    known = count.value if isinstance(count, Const) and isinstance(count.value, int) else None
    storage.nbytes = known * storage.width if known is not None and storage.width is not None else None
    storage.small = is_small(storage.nbytes)


def is_of_array(value: Value | None) -> bool:
    """C++: a size in bytes that counts the elements of a tensor, or of an array of NumPy's."""
    return value is not None and _OF_ARRAY.search(value.term) is not None


def elements(values: list[Value]) -> int | None:
    """The number of elements that a shape names, where every extent is a number."""
    total = 1
    for value in values:
        if isinstance(value, Series) and value.items is not None and value.name != "open":
            inner = elements(value.items)
            if inner is None:
                return None
            total *= inner
        elif isinstance(value, Const) and isinstance(value.value, int) and not isinstance(value.value, bool):
            total *= max(value.value, 0)
        else:
            return None
    return total


def _of_data(value: Value | None) -> tuple[int | None, bool]:
    """Bytes of literal data, and whether it is small: a number, a display, a list of one number an item."""
    if isinstance(value, Const) and isinstance(value.value, int | float | bool):
        return _WORD_BYTES, True
    if isinstance(value, Series):
        if value.items is not None and not any(map(_is_array, value.items)):
            if len(value.items) > 1 and all(map(_is_open, value.items)):
                return None, False  # rows, and nothing tells how long they are
            known = None if value.name == "open" else _elements_of_display(value)
            # A list in Python source, or one built item by item: lengths, indices, ids.
            return (known * _WORD_BYTES if known is not None else None), True
        return None, value.items is None
    return None, False


def _is_open(value: Value) -> bool:
    """Whether it is a list, and nothing tells how many it holds."""
    return isinstance(value, Series) and (value.items is None or value.name == "open")


def _is_array(value: Value) -> bool:
    """Whether an item holds many numbers: of a tensor in a display only one is taken."""
    return isinstance(value, Buffer) and value.storage.memory is not Memory.UNKNOWN and not value.type.startswith("torch.")


def _elements_of_display(value: Series) -> int:
    return sum(_elements_of_display(item) if isinstance(item, Series) and item.items is not None else 1 for item in value.items or [])


def _item_bytes(call: Call) -> int:
    value = call.value("dtype")
    text = value.term if value is not None else ""
    for width, size in (
        ("64", 8),
        ("double", 8),
        ("long", 8),
        ("32", 4),
        ("16", 2),
        ("half", 2),
        ("8", 1),
        ("bool", 1),
        ("float", 4),
        ("int", 4),
    ):
        if width in text:
            return size
    return 4

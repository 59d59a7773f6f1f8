"""Which values live where the model does: derived from the loss, a model's output, parameters, gradients, or a batch that was moved.

A run keeps what was computed from what; once it has ended, and it is known which value went into ``backward()``, the question is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from streamlint.interpreter.values import Buffer, Const, Device, Handle, Instance, Opaque, Series, Table, Value
from streamlint.record import field, record

# Methods of tensors that give another tensor in the same place. A method of an unknown value that is none of these is just a call.
_TENSOR_METHODS = frozenset(
    "abs add all amax amin any argmax argmin bool clamp clip clone contiguous cos cpu_ cumsum detach detach_ diff div double eq exp expand "
    "flatten float ge gt half bfloat16 int le log log2 logsumexp long lt max mean median min mul ne neg norm permute pow prod reshape "
    "round rsqrt sigmoid sign sin softmax log_softmax sort sqrt square squeeze std sub sum t tanh topk transpose unsqueeze var view "
    "gather index_select masked_fill data type_as".split()
)
# Methods that wait for the size of the tensor that they give.
_SEARCHES = frozenset({"nonzero", "unique", "masked_select", "unique_consecutive"})
# Methods that answer on the host, and attributes that are no tensors.
_HOST_METHODS = frozenset(
    "item tolist cpu numpy size numel dim ndimension stride element_size get_device data_ptr is_contiguous nelement keys __len__ "
    "is_floating_point storage_offset".split()
)
_HOST_ATTRIBUTES = frozenset(
    "shape dtype device ndim is_cuda requires_grad layout itemsize nbytes is_leaf name config training grad_fn is_sparse keys".split()
)
# Names may silence: calls that bring data from somewhere, on whichever side it is.
_SOURCES = frozenset(
    "sample next get get_batch pop popleft fetch read load draw recv __next__ tokenize tokenizer collate gather_object".split()
)
_OF_MODULES = {"parameters": "parameters", "named_parameters": "parameters", "clip_grad_norm_": "gradients", "get_total_norm": "gradients"}

HOST, MOVED, MODULE, SAME, CALL = "host", "moved", "module", "same", "call"


@record(slots=True)
class Link:
    """A value and what it was made of. ``direct``: by calling a value (``model(x)``), not a function or a method of something."""

    kind: str
    result: Value
    inputs: tuple[Value, ...]
    name: str = ""
    direct: bool = False


@record(frozen=True, slots=True)
class Origin:
    """Why a value is where the model is. ``sure``: it is a tensor beyond doubt."""

    text: str
    sure: bool


def _is_own_name(receiver: Value, name: str) -> bool:
    return isinstance(receiver, Handle | Instance) and "." not in name


def _kind(receiver: Value | None, method: str, direct: bool) -> str:
    if direct:
        return MODULE if isinstance(receiver, Handle) and receiver.type.startswith("torch.nn.") else CALL
    if method in _OF_MODULES:
        return _OF_MODULES[method]
    if receiver is not None and method in _HOST_METHODS:
        return HOST
    return SAME if receiver is not None and method in _TENSOR_METHODS else CALL


Noted = tuple[list[Link], list[tuple[Value, tuple[Value, ...]]], list[tuple[Value, str]]]


@record(slots=True)
class Origins:
    """What a run computed from what. ``earlier`` gives what was noted before it, which nobody has asked for yet."""

    losses: list[Value] = field(default_factory=list)
    earlier: Callable[[], Noted] | None = None
    _links: list[Link] = field(default_factory=list)
    _written: list[tuple[Value, tuple[Value, ...]]] = field(default_factory=list)
    _placed: list[tuple[Value, str]] = field(default_factory=list)

    def noted(self) -> Noted:
        """All that was noted: of what, what was written into what, and what was put on a device."""
        if self.earlier is not None:
            earlier, self.earlier = self.earlier, None
            links, written, placed = earlier()
            self._links, self._written, self._placed = links + self._links, written + self._written, placed + self._placed
        return self._links, self._written, self._placed

    def computed(self, result: Value, inputs: list[Value], name: str) -> None:
        """Work of a library on tensors: its result is where they are."""
        text = next((text for word, text in _OF_MODULES.items() if name.rpartition(".")[2] == word), "")
        self._add(Link(text or SAME, result, tuple(inputs), name))

    def wrote(self, target: Value, inputs: list[Value]) -> None:
        """``target.add_(x)``: what takes a value of the device in is there itself."""
        self._written.append((target, tuple(inputs)))

    def put(self, value: Value, why: str) -> None:
        """A weaker reason, for loops that do not train: a call out of view was given the device (``device=``) to put its result on."""
        self._placed.append((value, why))

    def is_gradient(self, value: Value) -> bool:
        """Whether a value from out of view is a gradient that autograd has left, or a view of one."""
        for link in reversed(self._all_links()):
            if link.kind == SAME and link.inputs and link.result is value:
                value = link.inputs[0]
        return (value.storage.name if isinstance(value, Buffer) else value.term).endswith(".grad")

    def moved(self, result: Value, source: Value, name: str, to_host: bool) -> None:
        self._add(Link(HOST if to_host else MOVED, result, (source,), name))

    def called(self, result: Value, name: str, spelled: str, receiver: Value | None, inputs: list[Value]) -> None:
        """A call out of view. ``spelled`` is the last part of what is called, as written."""
        method = spelled or name.rpartition(".")[2]
        direct = receiver is not None and (
            name in (receiver.term, "__call__") or name.endswith(".__call__") or _is_own_name(receiver, name)
        )
        self._add(Link(_kind(receiver, method, direct), result, tuple(inputs), method, direct))

    def went_backward(self, receiver: Value | None, given: list[Value]) -> None:
        """The value that a backward pass starts from: what was given to an engine, else the receiver."""
        self.losses.extend(given[:1] or ([receiver] if receiver is not None else []))
        if isinstance(receiver, Buffer):
            self.losses.append(receiver)

    def is_uploaded(self, value: Buffer) -> bool:
        """Whether a value on a device is what was moved there, and nothing was computed from it."""
        return value.storage.on_device and any(link.kind == MOVED and key(link.result) == key(value) for link in self._all_links())

    def are_results(self, values: Iterable[Value]) -> bool:
        """Whether any of the values was computed or called for, as far as that is noted."""
        asked = set(map(id, values))
        return any(id(link.result) in asked for link in self._all_links())

    def _all_links(self) -> list[Link]:
        return self.noted()[0]

    def _add(self, link: Link) -> None:
        self._links.append(link)

    def settled(self, wide: bool = False) -> Settled:
        """The answers, once the run is over. ``wide`` takes the weaker reasons too."""
        return Settled(self, wide)


def key(value: Value) -> int:
    """Views of one memory are one value here."""
    if isinstance(value, Buffer):
        return id(value.storage)
    if isinstance(value, Opaque) and value.buffer is not None:
        return id(value.buffer.storage)
    return id(value)


class Settled:
    """Answers about the values of a finished run."""

    def __init__(self, origins: Origins, wide: bool = False) -> None:
        self.wide = wide
        links, written, placed = origins.noted()
        self.placed = {key(value): why for value, why in placed} if wide else {}
        self.written: dict[int, list[Value]] = {}
        for target, inputs in written:
            self.written.setdefault(key(target), []).extend(inputs)
        self.made: dict[int, Link] = {}
        for link in links:
            if not isinstance(link.result, Const):
                self.made.setdefault(key(link.result), link)
        self.holders: dict[int, tuple[Value, str]] = {}
        self._answers: dict[int, Origin | None] = {}
        self._seeds: dict[int, str] = {}
        for link in links:
            for value in (link.result, *link.inputs):
                self._note_parts(value, 4)
        for value, _ in placed:
            self._note_parts(value, 2)
        waiting = list(origins.losses)
        for loss in waiting:
            self._note_parts(loss, 2)
            self._seeds[key(loss)] = "the loss"
        self._trace_back(waiting)

    def _note_parts(self, value: Value, depth: int) -> None:
        if not depth:
            return
        for name, part in _parts(value):
            if key(part) != key(value) and key(part) not in self.holders:
                self.holders[key(part)] = (value, name)
                self._note_parts(part, depth - 1)

    # --- backwards from the loss -------------------------------------------------------------------------------------------------------

    def _trace_back(self, waiting: list[Value]) -> None:
        seen: set[int] = set()
        while waiting:
            value = waiting.pop()
            if key(value) in seen:
                continue
            seen.add(key(value))
            link = self.made.get(key(value))
            if link is None:
                waiting.extend(self._whole(value))
                if isinstance(value, Opaque) and key(value) not in self.holders:
                    waiting.extend(value.reach)
                elif isinstance(value, Series | Table):
                    waiting.extend(part for _, part in _parts(value))
            elif link.kind == SAME:
                waiting.extend(link.inputs)
            elif link.kind == CALL and link.name not in _SOURCES:
                self._seeds.setdefault(key(value), "the model's output")
                waiting.extend(v for v in link.inputs if (made := self.made.get(key(v))) is not None and (made.direct or made.kind == SAME))

    def _whole(self, value: Value) -> list[Value]:
        """What a value is a part of, where that is the result of a call."""
        found: list[Value] = []
        while (held := self.holders.get(key(value))) is not None and held[1] not in _HOST_ATTRIBUTES and len(found) < 4:
            value = held[0]
            if key(value) in self.made:
                return [value]
            found.append(value)
        return []

    # --- forwards ----------------------------------------------------------------------------------------------------------------------

    def origin(self, value: Value) -> Origin | None:
        """Why a value is where the model is; None where nothing says so."""
        if isinstance(value, Const | Instance | Handle | Device):
            return None
        if isinstance(value, Buffer) and value.storage.on_host:
            return None
        if isinstance(value, Opaque) and value.buffer is not None and value.buffer.storage.on_host:
            return None
        place = key(value)
        if place not in self._answers:
            self._answers[place] = None  # while it is asked
            self._answers[place] = self._ask(value, place) or self._first(self.written.get(place, [])) or self._put(place)
        return self._answers[place]

    def _ask(self, value: Value, place: int) -> Origin | None:
        link = self.made.get(place)
        if place in self._seeds:
            return Origin(self._seeds[place], self._seeds[place] == "the loss" or (link is not None and link.kind == SAME))
        if isinstance(value, Buffer) and value.storage.on_device and (link is None or link.kind in (SAME, MOVED)):
            return Origin("a device value", True)
        if link is not None:
            return self._made_by(link)
        if isinstance(value, Opaque) and value.name.endswith(".grad"):
            return Origin("gradients", True)
        if isinstance(value, Opaque | Buffer) and "grad" in value.attrs:
            return Origin("parameters", True)
        held = self.holders.get(place)
        if held is not None:
            if held[1] in _HOST_ATTRIBUTES:
                return None
            if held[1] == ".grad" or held[1] == "grad":
                return Origin("gradients", True)
            whole = self.origin(held[0])
            if whole is None:
                return None
            return Origin(whole.text, whole.sure and (isinstance(value, Buffer) or (self.wide and "." not in held[1])))
        if isinstance(value, Opaque):
            if any(part in value.name for part in ("len(", ".shape", ".size(", "or@")):
                return None
            return self._first(list(value.reach), arithmetic=True)
        if isinstance(value, Series | Table):
            return self._first([part for _, part in _parts(value)])
        return None

    def _put(self, place: int) -> Origin | None:
        return Origin(self.placed[place], False) if place in self.placed else None

    def _made_by(self, link: Link) -> Origin | None:
        if link.kind == HOST:
            return None
        if link.kind == MOVED:
            return Origin("a moved batch", True)
        if link.kind == MODULE:
            return Origin("the model's output", True)
        if link.kind in ("parameters", "gradients"):
            return Origin(link.kind, True)
        found = self._first(list(link.inputs))
        if found is None or link.name in _SOURCES:
            return None
        sure = link.kind == SAME or (self.wide and found.sure and link.name in _SEARCHES)
        return Origin(found.text, sure)

    def _first(self, values: list[Value], arithmetic: bool = False) -> Origin | None:
        found = [origin for value in values if (origin := self.origin(value)) is not None]
        return next((origin for origin in found if origin.sure), found[0] if found else None)


def _parts(value: Value) -> list[tuple[str, Value]]:
    if isinstance(value, Opaque):
        own = list(value.attrs.items())
        return own + (list(value.buffer.attrs.items()) if value.buffer is not None else [])
    if isinstance(value, Buffer):
        return [*value.attrs.items(), *(value.leaves or {}).items()]
    if isinstance(value, Series):
        parts = [("", v) for v in (value.items or ())] + [(k, v) for k, v in dict.items(value.made)]
        return parts + ([("", value.element)] if value.element is not None else [])
    if isinstance(value, Table):
        return list(value.items.items())
    return []

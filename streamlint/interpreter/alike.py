"""Streams from out of view that may be one and the same: what might be an order is taken as one."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.cuda_model import NULL
from streamlint.interpreter.values import Stream
from streamlint.record import field, record


@record(slots=True)
class Alike:
    """What is known of a path's streams from out of view."""

    ambient: bool = False  # Python: the current stream at a root may be any stream of its caller's
    made_current: list[str] = field(default_factory=list)  # streams that a call, and no scope, has made the current one
    root: str = ""  # how the keys begin of the streams that the root is given itself
    _given: dict[str, bool] = field(default_factory=dict)  # streams that callers give: whether the root, and not an object of its

    def may_be(self, stream: Stream) -> tuple[str, ...]:
        """The streams that one from out of view may be: the caller's current one, and for a getter each that was made current."""
        ambient = (NULL,) if self.ambient and stream.kind in ("parameter", "foreign") else ()
        return (*ambient, *self.made_current) if stream.kind == "foreign" else ambient

    def given_alike(self, stream: Stream) -> Iterator[str]:
        """The streams that a caller may have given twice: an object that was made with one, and that one beside it."""
        if stream.kind == "parameter":
            to_root = self._given.setdefault(stream.key, stream.key.startswith(self.root))
            yield from (key for key, to_it in self._given.items() if to_it != to_root)

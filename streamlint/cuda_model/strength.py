"""How surely something is so, and where we know it from."""

from __future__ import annotations

import enum

from streamlint.support.records import record


class Strength(enum.IntEnum):
    """How far an order or a wait can be relied on. Each includes the ones below it."""

    NEVER = 0  # excluded by documents, or by nothing but never seen
    MAY = 1  # documents allow it; the GPU was not seen to do it
    OBSERVED = 2  # a GPU does it; no document promises it
    GUARANTEED = 3  # documented


@record(frozen=True, slots=True)
class Fact:
    """One sentence about CUDA that a litmus run can contradict.

    ``says`` is the sentence, worded as if it held; ``strength`` says how far it does. ``documents`` is what documents say, with the
    document's name, or empty where none speaks of it. ``hardware`` is where GPU and documents differ, or what only the GPU showed.
    ``shown_by`` is a litmus program whose outcome rests on this fact.
    """

    name: str
    says: str
    strength: Strength
    documents: str = ""
    hardware: str = ""
    shown_by: str = ""
    differs: bool = False  # documents promise it, and the hardware does not do it

    @property
    def source(self) -> str:
        """Document and measurement in a line."""
        return "; ".join(part for part in (self.documents, self.hardware) if part)

"""Objects that change what they were made with: an optimizer its parameters."""

from __future__ import annotations

from collections.abc import Iterator

from streamlint.models.vocabulary import Selector
from streamlint.transfer.actions import Action, Updated
from streamlint.transfer.modelled import ModelledCall


def updates(call: ModelledCall) -> Iterator[Action]:
    """``optimizer.step()``."""
    held = call.row.get("updates")
    if isinstance(held, Selector) and held.position is not None and call.receiver is not None:
        yield Updated(call.receiver, held.position, call.name)


EFFECTS = {"launch": updates}

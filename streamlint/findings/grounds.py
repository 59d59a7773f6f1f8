"""What a finding rests on: the structure of the program around its place, without a word of it. The confidence is reckoned from it."""

from __future__ import annotations

from streamlint.support.records import names_of, record

WORK, WAIT = "work", "wait"
"""What may stand next to a place: work for the device, or a wait of the host for it."""


@record(frozen=True, slots=True)
class Grounds:
    """The evidence of one finding. Counts are cut where more say no more; flags hold where nothing is known against them."""

    is_cpp: bool = False
    calls: int = 0  # of the trail that lead to the place
    files: int = 0  # of the trail, beside that of the place
    guards: int = 0  # branches that decide whether the place, or a call that leads to it, runs
    loops: int = 0  # around the place in its function
    unknown: int = 0  # calls around the place, and around those that lead to it, of which nobody knows what they call
    beside: int = 0  # further places of the trail
    is_reached: bool = False  # the body of a file leads there by known calls
    is_made: bool = True  # of a method: the program makes objects of the class, or of one below it
    is_imported: bool = False  # another file imports the file
    before: str = ""  # the nearest known call before the place: work for the device, a wait for it, or neither
    after: str = ""
    device: str = ""  # the strongest reason why what the place works on is on a device: of its memory
    round: str = ""  # what each round of the loop does that the finding holds up: optimizer, backward, ...


def as_grounds(known: Grounds) -> dict[str, object]:
    """A record as plain data."""
    return {name: getattr(known, name) for name in names_of(Grounds)}

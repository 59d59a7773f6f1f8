"""How fast copies of pinned memory are, by direction: in the run, or over the link that the GPU has to its host.

Sources: NVIDIA's data sheets of the GPUs (the generation of PCI Express, the bandwidth of NVLink-C2C). What a link carries is that of
its 16 lanes in one direction, of which copies of pinned memory reached 84 % on an H200 (53 to 55 GB/s).
"""

from __future__ import annotations

import re
from collections import defaultdict

from streamlint import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from streamlint.trace.model import Work

    Direction = tuple[str, str]

NEITHER = ("", "")
UPLOAD, DOWNLOAD = ("host", "device"), ("device", "host")
_LARGE = (1 << 20, 1 << 16)
"""Bytes of a copy from which its rate counts as what the direction reaches: of large ones if there are any, else of middling ones."""
_LEAST = 1_500
"""Nanoseconds that the smallest copy takes on the device, as measured with CUPTI on an H200 (1.1 to 1.5 µs)."""
_HOST = ("pageable", "pinned")
_REACHED = 0.84
_LINKS = (  # the first that the GPU's name has; bytes per second in one direction
    (re.compile(r"\bG[HB]\d00\b"), 450e9),  # NVLink-C2C
    (re.compile(r"\b[HB]\d+|RTX (?:PRO|50\d\d)"), 64e9),  # PCI Express 5
    (re.compile(r"\b[VPMK]\d+|\bT4\b|TITAN|GTX|RTX (?:20\d\d|[4-8]000\b(?! Ada))"), 16e9),  # PCI Express 3
)
_LINK = 32e9  # PCI Express 4: Ampere, Ada, and all that is not known


def direction(source: str, destination: str) -> Direction:
    """Between host and device, ``NEITHER`` for any other way."""
    ends = tuple("host" if one in _HOST else "device" if one in ("device", "array") else "" for one in (source, destination))
    return (ends[0], ends[1]) if set(ends) == {"host", "device"} else NEITHER


def reached(works: Iterable[Work]) -> dict[Direction, float]:
    """Bytes per second that copies of pinned memory reached in a run, by direction."""
    found: dict[Direction, list[Work]] = defaultdict(list)
    for work in works:
        if work.kind == "copy" and "pinned" in (work.source, work.destination) and work.bytes >= _LARGE[-1] and work.end > work.start:
            found[direction(work.source, work.destination)].append(work)
    found.pop(NEITHER, None)
    rates = {}
    for way, copies in found.items():
        large = [work for work in copies if work.bytes >= _LARGE[0]] or copies
        rates[way] = sum(work.bytes for work in large) * 1e9 / sum(work.end - work.start for work in large)
    return rates


def expected(gpu: str) -> dict[Direction, float]:
    """Bytes per second that copies of pinned memory reach on a GPU, by its name, where a run has none."""
    rate = _REACHED * next((link for pattern, link in _LINKS if pattern.search(gpu)), _LINK)
    return {UPLOAD: rate, DOWNLOAD: rate}


def pinned_time(work: Work, rates: dict[Direction, float]) -> int:
    """How long a copy takes, in ns, whose host memory is pinned; as recorded, if it was, or if it is none between host and device."""
    length = work.end - work.start
    if work.kind != "copy" or "pageable" not in (work.source, work.destination):
        return length
    rate = rates.get(direction(work.source, work.destination))
    return min(length, _LEAST + round(work.bytes * 1e9 / rate)) if rate else length

"""Kinds of memory, and directions of copies between them."""

from __future__ import annotations

import enum


class Memory(enum.Enum):
    """What a block of memory is made of. UNKNOWN is neither pageable nor pinned for any rule."""

    DEVICE = "device"
    PINNED = "pinned"
    PAGEABLE = "pageable"
    MANAGED = "managed"
    UNKNOWN = "unknown"


class Direction(enum.Enum):
    H2D = "h2d"
    D2H = "d2h"
    D2D = "d2d"
    H2H = "h2h"
    PEER = "peer"
    UNKNOWN = "unknown"

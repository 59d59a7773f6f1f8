"""Which functions of CuPy ``cupy_waits.py`` calls, and with what: values by the name of a parameter, and calls written by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import tomllib

SAID: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
BY_HAND: dict[str, list[str]] = SAID["by_hand"] | {
    f"cupyx.scipy.ndimage.{name}": [f"cupyx.scipy.ndimage.{name}({given})" for given in SAID["by_label"]["given"]]
    for name in SAID["by_label"]["names"]
}
"""Calls of functions whose arguments no signature tells."""
MOST_PLAIN, MOST_CALLS = 4, 10
"""Calls of a function that succeed: without options, and in all. Calls by hand come on top."""
PROFILES = ("x", "v", "i", "b", "c", "spd", "csr", "img", "h64")
"""Names of arrays that take the places of parameters that are arrays: a matrix, a vector, integers, truth values, complex numbers, …"""


def argument(name: str, profile: str) -> str:
    """The code of a required argument: by its name, else an array."""
    return str(SAID["same"].get(name, profile))


def option(name: str, default: object) -> str | None:
    """The code of an argument with a default, to see the other way round; none, where nothing is known of it."""
    if name in ("out", "sorter"):
        return None
    if name in SAID["options"]:
        return str(SAID["options"][name])
    if default is True or str(default) == "True":
        return "False"
    return "True" if default is False or str(default) == "False" else None


def names() -> dict[str, Any]:
    """The values that calls use."""
    import cupy
    import cupyx
    import cupyx.scipy.sparse
    import numpy

    state = numpy.random.default_rng(0)
    h = state.random((64, 64), dtype=numpy.float32)
    pin = cupyx.empty_pinned((64, 64), numpy.float32)
    pin[...] = h
    dense = (h * (h > 0.9)).astype("f4")
    wide = h.astype("f8")
    spd = wide @ wide.T + 64 * numpy.eye(64)
    given = {
        "x": h, "y": h[::-1].copy(), "v": h[0].copy(), "i": numpy.arange(8), "b": h > 0.5, "c": h.astype("c8"), "spd": spd,
        "spd8": spd[:8, :8].copy(), "v8": wide[0, :8].copy(), "img": state.random((32, 32, 3)).astype("f4"), "h64": wide.copy(),
        "n": numpy.array(0.5, "f4"), "w": numpy.ones(64), "grid": numpy.arange(64.0), "bins": numpy.linspace(0, 1, 9), "dense": dense,
        "eye2": numpy.eye(2), "foot": numpy.ones((3, 3)), "pv": numpy.full(64, 1 / 64), "lab": (h * 4).astype("i4"),
        "ids": numpy.array([1, 2]), "sos": numpy.array([[1, 0.5, 0.2, 1, 0.1, 0.1]]),
    }  # fmt: skip
    kept: dict[str, Any] = {name: cupy.asarray(value) for name, value in given.items()}
    return kept | {
        "cupy": cupy, "cupyx": cupyx, "h": h, "pin": pin, "hi": numpy.arange(4), "hb": h > 0.5, "state": cupy.random.RandomState(0),
        "rng": cupy.random.default_rng(0), "numpy": numpy,
    }  # fmt: skip


def prepared(kept: dict[str, Any]) -> dict[str, Any]:
    """The values, with arrays copied, since calls change them."""
    import cupy
    import cupyx.scipy.sparse as sparse

    again = {name: value.copy() if isinstance(value, cupy.ndarray) else value for name, value in kept.items()}
    csr = again["csr"] = sparse.csr_matrix(again["dense"])
    bands = (cupy.ones((3, 8)), cupy.asarray([-1, 0, 1]))  # CuPy makes no dia_matrix of a dense array
    again |= {
        "coo": csr.tocoo(),
        "csc": csr.tocsc(),
        "dia": sparse.dia_matrix(bands, shape=(8, 8)),
        "spcsr": sparse.csr_matrix(again["spd"]),
    }
    again["poly"] = cupy.poly1d(again["v8"])
    again["lu"] = (again["spd"], cupy.arange(64, dtype="i4"))
    return again


def kind_of(value: Any) -> str:
    """What a call gives, in a word or two."""
    import cupy
    import numpy

    if isinstance(value, cupy.ndarray):
        return "device array"
    if isinstance(value, (numpy.ndarray, bytes)):
        return "host array"
    if isinstance(value, (bool, int, float, complex, str, numpy.generic)):
        return "host scalar"
    if isinstance(value, (list, tuple)):
        return "tuple of " + ", ".join(sorted({kind_of(one) for one in value})) if value else "tuple"
    home = type(value).__module__.split(".")[0]
    return "none" if value is None else f"object of {home}" if home in ("cupy", "cupyx", "cupy_backends") else "host object"

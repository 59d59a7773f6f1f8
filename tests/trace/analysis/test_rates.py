"""How long copies take whose memory is pinned."""

from __future__ import annotations

import pytest

from streamlint.trace.analysis.rates import DOWNLOAD, UPLOAD, direction, expected, pinned_time, reached
from streamlint.trace.model import Work


def copy(source: str, destination: str, size: int, length: int) -> Work:
    return Work("copy", "", 1, 0, 7, 1000, 1000 + length, bytes=size, source=source, destination=destination)


@pytest.mark.parametrize(
    ("gpu", "rate"),
    [
        ("NVIDIA H200", 54),
        ("NVIDIA H100 80GB HBM3", 54),
        ("NVIDIA GH200 480GB", 378),
        ("NVIDIA A100-SXM4-80GB", 27),
        ("NVIDIA GeForce RTX 4090", 27),
        ("NVIDIA GeForce RTX 5090", 54),
        ("NVIDIA RTX 6000 Ada Generation", 27),
        ("Quadro RTX 6000", 13),
        ("Tesla V100-SXM2-16GB", 13),
        ("Tesla T4", 13),
        ("NVIDIA L4", 27),
        ("", 27),
    ],
)
def test_rates_of_links(gpu: str, rate: int) -> None:
    assert round(expected(gpu)[UPLOAD] / 1e9) == rate == round(expected(gpu)[DOWNLOAD] / 1e9)


def test_directions() -> None:
    assert (direction("pageable", "device"), direction("array", "pinned"), direction("device", "device")) == (UPLOAD, DOWNLOAD, ("", ""))


def test_a_pinned_copy_takes_what_the_link_takes() -> None:
    rates = {UPLOAD: 50e9}
    assert pinned_time(copy("pageable", "device", 50_000_000, 6_000_000), rates) == 1_001_500
    assert pinned_time(copy("pinned", "device", 50_000_000, 6_000_000), rates) == 6_000_000, "it was pinned already"
    assert pinned_time(copy("device", "pageable", 50_000_000, 6_000_000), rates) == 6_000_000, "no rate is known for that way"
    assert pinned_time(copy("pageable", "device", 4, 1_100), rates) == 1_100, "never slower than it was"


def test_large_copies_say_what_is_reached() -> None:
    works = [
        copy("pinned", "device", 1 << 17, 100_000),
        copy("pinned", "device", 4_000_000, 100_000),
        copy("pageable", "device", 1 << 22, 9),
    ]
    assert reached(works) == {UPLOAD: 40e9}
    assert reached(works[:1]) == {UPLOAD: (1 << 17) * 1e4}

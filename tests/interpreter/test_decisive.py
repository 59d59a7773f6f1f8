"""Words by which a body can matter, and what only looks like one."""

from __future__ import annotations

import pytest

from streamlint.interpreter.decisive import cleared, has_word


@pytest.mark.parametrize(
    "text",
    [
        "x.pin_memory()",
        "is_pinned = True",
        "unpin(x)",
        "mempin(x)",
        "s = make_stream(x)",
        "x.get(stream)",
        "queue.get()",
        'say(f"there are {count.item()} left")',
        "say(f'on device {x.device}')",
        'x = torch.zeros(1, device="cuda:0")',
        'code = """void f() { cudaFree(x); }"""',
        "x.to(y)",
    ],
)
def test_it_can_matter(text: str) -> None:
    assert has_word(cleared(text))


@pytest.mark.parametrize(
    "text",
    [
        "mapping = typing(x)",
        "skipping(ping, happing)",
        "streamer = TextIteratorStreamer(x)",
        "raise ValueError('the stream of this device is not pinned')",
        'log("copied to the device", f"in {count} rounds of the stream")',
        "kwargs.get('name')",
        "TABLE.get(NAMES, 0)",
    ],
)
def test_it_cannot(text: str) -> None:
    assert not has_word(cleared(text))

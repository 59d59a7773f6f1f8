"""What an H200 did in recorded runs, held against the model as it stands; and the page that is made of the evidence."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from streamlint.commands import litmus
from streamlint.cuda_model import FACTS
from streamlint.litmus import page, recorded
from streamlint.litmus.predict import outside, strengths
from streamlint.litmus.program import parse
from streamlint.support.errors import StreamlintError

ROOT = Path(__file__).parents[2]
RECORDING = Path(__file__).parent / "recorded" / "nvidia-h200-driver-580.159.jsonl.gz"
# Programs about frees on a stream and allocations on the null stream beside a call that holds everything.
ORDERED = RECORDING.with_name("nvidia-h200-driver-580.159-ordered.jsonl.gz")
# Programs on two devices (seed 106 of `--only-peers`).
PEERS = RECORDING.with_name("nvidia-h200-driver-580.159-peers.jsonl.gz")
# Copies of a direction that shared an engine: seen once each, and not again (docs/cuda-model.md).
NOT_REPEATED = 1


@pytest.fixture(scope="module")
def runs() -> list[recorded.Run]:
    return recorded.read(RECORDING)


def test_the_model_expects_what_the_gpu_did(runs: list[recorded.Run]) -> None:
    found = list(recorded.contradictions(runs, strengths()))
    assert len(runs) > 16_000
    assert len(found) == NOT_REPEATED
    assert not any(outside(program, seen, strengths()) for _, program, _, seen in found)


def test_the_model_allows_what_the_gpu_did_with_ordered_memory() -> None:
    runs = recorded.read(ORDERED)
    found = list(recorded.contradictions(runs, strengths()))
    assert len(runs) > 4500
    assert len(found) <= len(runs) // 100
    assert not any(outside(program, seen, strengths()) for _, program, _, seen in found)
    turned = list(recorded.contradictions(runs, strengths("malloc-async-on-null-catches-up")))
    assert len(turned) > 10 * len(found)


def test_the_model_expects_what_two_gpus_did() -> None:
    """Copies between two H200 with peer access and without, events and streams of both, and stream-ordered memory of the other one."""
    runs = recorded.read(PEERS)[::4]
    assert len(runs) > 5000
    assert not list(recorded.contradictions(runs, strengths()))
    assert {"memcpyAsync.peer", "memcpyPeer", "mallocAsync.peer", "launch.peer", "freeAsync.peer"} <= {
        call.call for program, _ in runs for call in program.calls
    }


def test_a_model_that_is_wrong_is_contradicted(runs: list[recorded.Run]) -> None:
    rows = recorded.turned(runs[:3000], ["null-waits-for-blocking", "free-waits", "d2h-pageable-async-waits"])
    assert [row["caught"] for row in rows] == [True] * 3
    assert all(parse(row["by"]["program"]) and row["by"]["expected"] != row["by"]["seen"] for row in rows)


def test_the_page_is_that_of_the_evidence() -> None:
    assert (ROOT / "docs" / "cuda-model.md").read_text(encoding="utf-8") == page.page()


def test_every_fact_was_shown_on_the_gpu() -> None:
    shown: dict[str, bool] = {}
    for path in (ROOT / "streamlint" / "litmus" / "evidence").glob("run-*.json"):
        for name, agreed in json.loads(path.read_text(encoding="utf-8"))["facts"].items():
            shown[name] = shown.get(name, True) and agreed
    assert set(FACTS) <= set(shown)
    assert all(shown[name] for name in FACTS)


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "kept.jsonl"
    path.write_text('["T0 launch @n1 <gate", "h0"]\n["T0 launch @n1 <gate\\nT0 launch @n2", "h0 h1"]\n')
    assert litmus.main(["--recorded", str(path)]) == 1
    assert "2 recorded runs, 1 as expected" in capsys.readouterr().out
    path.write_text('["T0 launch @n1 <gate", "h0"]\n')
    assert litmus.main(["--recorded", str(path)]) == 0


@pytest.mark.parametrize("content", [b"no json\n", b'{"a": 1}\n', b'["T0 launch @n1 <gate"]\n', b"\xff\xfe\n"])
def test_what_is_no_recording(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "kept.jsonl"
    path.write_bytes(content)
    with pytest.raises(StreamlintError, match=r"kept\.jsonl is no recording"):
        recorded.read(path)


def test_a_broken_archive(tmp_path: Path) -> None:
    path = tmp_path / "kept.jsonl.gz"
    path.write_bytes(gzip.compress(b'["T0 launch @n1 <gate", "h0"]\n')[:-6])
    with pytest.raises(StreamlintError, match="is no recording"):
        recorded.read(path)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(StreamlintError, match="cannot read"):
        recorded.read(tmp_path / "none")

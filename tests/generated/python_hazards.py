"""Hazards in Python: the caller's half and the last helper's half of each, and what makes it harmless."""

from __future__ import annotations

from generated.texts import Hazard

_TORCH, _CUPY = ("import torch",), ("import cupy as cp",)
_NO_TORCH = frozenset({"module"})
_SYNCHRONIZED = "torch.cuda.current_stream().synchronize()  #: good"

_TRAINING = """
$net = torch.nn.Linear(64, 1).to("cuda")
$optimizer = torch.optim.SGD($net.parameters(), lr=0.1)
$history = []
for $images, $labels in $loader:
    $loss = torch.nn.functional.mse_loss($net($images.to("cuda")), $labels.to("cuda"))
    $optimizer.zero_grad()
    $loss.backward()
    $optimizer.step()
    $history.append(CALL($loss))
return $history
"""
_LOADER = """
$loader = [(torch.randn(32, 64), torch.randn(32, 1)) for _ in range(8)]
"""

_PINNED_COPY = f"""
$target = torch.empty(SIZE, device="cuda")
$staging = torch.ones(SIZE, pin_memory=True)
$target.copy_($staging, non_blocking=True)  #: source
{_SYNCHRONIZED}
"""
_ASYNCHRONOUS_READ = f"""
$scores = torch.ones(SIZE, device="cuda").mul(2.0)
$host = $scores.to("cpu", non_blocking=True)  #: source
{_SYNCHRONIZED}
"""
_SIDE_STREAM = """
$side = torch.cuda.Stream()
with torch.cuda.stream($side):
    $grid = torch.zeros(SIZE, device="cuda")
    $grid.add_(1.0)  #: source
torch.cuda.current_stream().wait_stream($side)  #: good
"""
_LANE = """
$lane = torch.cuda.Stream()
$lane.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream($lane):
    $host = torch.ones(SIZE, device="cuda").argmax().to("cpu", non_blocking=True)  #: source
"""
_DEFAULT_SYNCHRONIZED = """
torch.cuda.default_stream().synchronize()  #: sink bad
torch.cuda.synchronize()  #: good
"""
_SIZE = "1 << 20"


def _both_ways(name: str, code: str, cause: str, value: str, effect: str) -> tuple[Hazard, Hazard]:
    """Cause above and effect below, the value handed down; and the other way round, the value returned."""
    above, below = cause.replace("SIZE", _SIZE), cause.replace("SIZE", "$x")
    last = effect.replace("VALUE", "$x")
    own = effect.replace("VALUE", "$got")
    return (
        Hazard(f"{name}-passed", code, f"{above}return CALL({value})", last),
        Hazard(f"{name}-returned", code, f"$got = CALL({_SIZE}){own}", f"{below}return {value}", carries="result"),
    )


_PAGEABLE = """
$batch = torch.zeros(SIZE)  #: source bad
$batch = torch.zeros(SIZE, pin_memory=True)  #: good
"""

HAZARDS = (
    *_both_ways("sl001", "SL001", _PAGEABLE, "$batch", '\nreturn VALUE.to("cuda", non_blocking=True)  #: sink'),
    *_both_ways("sl005", "SL005", _ASYNCHRONOUS_READ, "$host", "\nreturn VALUE.tolist()  #: sink"),
    *_both_ways("sl006", "SL006", _SIDE_STREAM, "$grid", "\nreturn VALUE.sum()  #: sink"),
    *_both_ways("sl008", "SL008", _PINNED_COPY, "$staging", "\nVALUE.fill_(1.0)  #: sink\nreturn VALUE"),
    Hazard(
        "sl014-returned",
        "SL014",
        f"$got = CALL({_SIZE}){_DEFAULT_SYNCHRONIZED}return $got.tolist()",
        f"{_LANE.replace('SIZE', '$x')}return $host",
        carries="result",
    ),
    Hazard("sl014-passed", "SL014", f"{_LANE.replace('SIZE', _SIZE)}return CALL($host)", f"{_DEFAULT_SYNCHRONIZED}return $x.tolist()"),
    Hazard("sl020-passed", "SL020", _LOADER + _TRAINING, "\nreturn $x.item()  #: sink bad\nreturn $x.detach()  #: good"),
    Hazard(
        "sl021-reached",
        "SL021",
        _LOADER + _TRAINING.replace("$history.append(CALL($loss))", "CALL($loss)"),
        "\ntorch.cuda.synchronize()  #: sink bad\ntorch.cuda.current_device()  #: good\nreturn $x",
    ),
    Hazard(
        "sl002-passed",
        "SL002",
        """
$stream = cp.cuda.Stream()
$results = []
for _ in range(16):
    with $stream:
        $pixels = cp.ones((256, 256))
        $spectrum = cp.fft.fft2($pixels)
        $power = CALL($spectrum)  #: good
    $power = CALL($spectrum)  #: bad
    with $stream:
        $results.append(cp.log1p($power))
$stream.synchronize()
return $results
""",
        "\nreturn cp.abs($x)  #: sink",
        imports=_CUPY,
        without=_NO_TORCH,
    ),
    Hazard(
        "sl003-reached",
        "SL003",
        """
for $round in range(64):
    CALL($round)
return None
""",
        """
$pointer = cp.cuda.runtime.malloc(1 << 20)  #: sink bad
$pointer = cp.cuda.runtime.mallocAsync(1 << 20, 0)  #: good
cp.cuda.runtime.memsetAsync($pointer, 0, 1 << 20, 0)
cp.cuda.runtime.free($pointer)  #: sink bad
cp.cuda.runtime.freeAsync($pointer, 0)  #: good
return $x
""",
        imports=_CUPY,
        without=_NO_TORCH,
    ),
    Hazard(
        "sl004-reached",
        "SL004",
        """
$stream = cp.cuda.Stream(non_blocking=True)
with $stream:
    $spectrum = cp.abs(cp.fft.rfft(cp.ones(4096)))


def $done(_):
    CALL($spectrum)


$stream.launch_host_func($done, None)  #: source
return $stream
""",
        "\nreturn cp.asnumpy($x)  #: sink bad\nreturn $x.shape  #: good",
        imports=_CUPY,
        without=_NO_TORCH,
    ),
    Hazard(
        "sl010-passed",
        "SL010",
        """
$frames = []


def $keep($frame):
    $frames.append(CALL($frame))


$state = torch.ones(4096, 4096, device="cuda")
for _ in range(16):
    $state = $state.mul(0.5).add(1.0)  #: source
    threading.Thread(target=$keep, args=($state,)).start()
return $frames
""",
        "\nreturn $x.cpu()  #: sink bad\nreturn $x.sum().item()  #: good",
        imports=("import threading", *_TORCH),
    ),
    Hazard(
        "sl013-passed",
        "SL013",
        """
$input = torch.ones(1024, device="cuda")
$graph = torch.cuda.CUDAGraph()
with torch.cuda.graph($graph):  #: source
    $norm = $input.mul(2.0)
    $top = CALL($norm)
return $graph, $top
""",
        "\nreturn $x.sum().item()  #: sink bad\nreturn $x.sum()  #: good",
    ),
    Hazard(
        "sl018-passed",
        "SL018",
        """
$ready = torch.cuda.Event()  #: source
$grown = torch.zeros(4096, device="cuda").exp()
$ready.record()  #: good
$lane = CALL($ready)
$ready.record()  #: source bad
with torch.cuda.stream($lane):
    return $grown.sum()
""",
        """
$side = torch.cuda.Stream()
$side.wait_event($x)  #: sink
return $side
""",
    ),
)

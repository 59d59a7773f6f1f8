"""Hazards in CUDA C++: the caller's half and the last helper's half of each, and what makes it harmless."""

from __future__ import annotations

from generated.texts import Hazard

_INCLUDES = ("#include <cuda_runtime.h>", "#include <cstdio>", "#include <cstdlib>")
_BYTES = "(1 << 20) * sizeof(float)"
_KERNEL = """
__global__ void $work(float* $values) { $values[threadIdx.x] *= 2.0f; }
"""
_STREAM = """
cudaStream_t $stream;
cudaStreamCreateWithFlags(&$stream, cudaStreamNonBlocking);
"""
_DEVICE = f"""
float* $device = nullptr;
cudaMalloc((void**)&$device, {_BYTES});
"""
_PINNED = f"""
float* $host = nullptr;
cudaMallocHost((void**)&$host, {_BYTES});
"""
_SYNCHRONIZED = """
cudaStreamSynchronize($stream);  #: good
"""
_PAGEABLE = f"""
float* $host = nullptr;
$host = static_cast<float*>(malloc({_BYTES}));  #: source bad
cudaMallocHost((void**)&$host, {_BYTES});  #: good
"""
_UPLOAD = f"""{_DEVICE}{_STREAM}
cudaMemcpyAsync($device, VALUE, {_BYTES}, cudaMemcpyHostToDevice, $stream);  #: sink
$work<<<1, 64, 0, $stream>>>($device);
return $device;
"""
_DOWNLOADED = f"""{_DEVICE}{_PINNED}{_STREAM}
$work<<<1, 64, 0, $stream>>>($device);
cudaMemcpyAsync($host, $device, {_BYTES}, cudaMemcpyDeviceToHost, $stream);  #: source
{_SYNCHRONIZED}"""
_READ = """
float $total = VALUE[0] + VALUE[1];  #: sink
std::printf("%f", $total);
return VALUE;
"""
_UPLOADED = f"""{_DEVICE}{_PINNED}{_STREAM}
$host[0] = 1.0f;
cudaMemcpyAsync($device, $host, {_BYTES}, cudaMemcpyHostToDevice, $stream);  #: source
{_SYNCHRONIZED}"""
_FILL = """
VALUE[0] = 2.0f;  #: sink
return VALUE;
"""
_WRITTEN = f"""{_DEVICE}{_STREAM}
$work<<<1, 64, 0, $stream>>>($device);  #: source
{_SYNCHRONIZED}"""
_SECOND_STREAM = """
cudaStream_t $other;
cudaStreamCreateWithFlags(&$other, cudaStreamNonBlocking);
$work<<<1, 64, 0, $other>>>(VALUE);  #: sink
return VALUE;
"""
_LEGACY_COPY = f"""
float* $into = static_cast<float*>(malloc({_BYTES}));
cudaMemcpy($into, VALUE, {_BYTES}, cudaMemcpyDeviceToHost);  #: sink
return $into;
"""


def _both_ways(name: str, code: str, cause: str, value: str, effect: str) -> tuple[Hazard, Hazard]:
    """Cause above and effect below, the value handed down; and the other way round, the value returned."""
    return (
        Hazard(
            f"cuda-{name}-passed", code, f"{cause}return CALL({value});", effect.replace("VALUE", "$x"), "cuda", _INCLUDES, above=_KERNEL
        ),
        Hazard(
            f"cuda-{name}-returned", code, f"float* $got = CALL(nullptr);\n{effect.replace('VALUE', '$got')}", f"{cause}return {value};",
            "cuda", _INCLUDES, carries="result", above=_KERNEL,
        ),
    )  # fmt: skip


HAZARDS = (
    *_both_ways("sl001", "SL001", _PAGEABLE, "$host", _UPLOAD),
    *_both_ways("sl005", "SL005", _DOWNLOADED, "$host", _READ),
    *_both_ways("sl006", "SL006", _WRITTEN, "$device", _SECOND_STREAM),
    *_both_ways("sl008", "SL008", _UPLOADED, "$host", _FILL),
    *_both_ways("sl014", "SL014", _WRITTEN, "$device", _LEGACY_COPY),
    Hazard(
        "cuda-sl002-passed", "SL002", f"""{_STREAM}
for (int $round = 0; $round < 64; ++$round) {{
    CALL($stream);
}}
return $stream;
""",
        f"""{_DEVICE}
$work<<<1, 64, 0, $x>>>($device);
$work<<<1, 64>>>($device);  #: sink bad
$work<<<1, 64, 0, $x>>>($device);  #: good
return $x;
""",
        "cuda", _INCLUDES, above=_KERNEL, type="cudaStream_t", without=frozenset({"plain-files"}),
    ),
    Hazard(
        "cuda-sl003-reached", "SL003", f"""{_DEVICE}
for (int $round = 0; $round < 64; ++$round) {{
    CALL($device);
}}
return $device;
""",
        f"""
float* $scratch = nullptr;
cudaMalloc((void**)&$scratch, {_BYTES});  #: sink bad
cudaMallocAsync((void**)&$scratch, {_BYTES}, 0);  #: good
$work<<<1, 64>>>($scratch);
$work<<<1, 64>>>($x);
cudaFree($scratch);  #: sink bad
cudaFreeAsync($scratch, 0);  #: good
return $x;
""",
        "cuda", _INCLUDES, above=_KERNEL,
    ),
    Hazard(
        "cuda-sl004-reached", "SL004", f"""{_DEVICE}{_STREAM}
$work<<<1, 64, 0, $stream>>>($device);
cudaLaunchHostFunc($stream, [](void* $data) {{
    float* $values = static_cast<float*>($data);
    CALL($values);
}}, $device);  #: source
return $device;
""",
        """
cudaFree($x);  #: sink bad
std::printf("done");  #: good
return $x;
""",
        "cuda", _INCLUDES, above=_KERNEL,
    ),
)  # fmt: skip

"""What a user calls things decides nothing but what `docs/known-limits.md` lists."""

from __future__ import annotations

import pytest

from streamlint.config.options import Options, Source
from streamlint.runner.engine import analyse


def found(text: str, language: str = "python") -> list[str]:
    name = "code.py" if language == "python" else "code.cu"
    return [finding.code for finding in analyse([Source(name, text, language)], Options()).findings]


LOOP = """import torch


def train(model, loader, optimizer, {name}):
    model.cuda()
    for x in loader:
        loss = model(x.cuda()).sum()
        loss.backward()
        optimizer.step()
        if {test}:
            print(loss.item())
"""


@pytest.mark.parametrize("name", ["weighted", "sentiment", "contest", "catalogued", "latest"])
def test_a_part_of_a_word_is_no_word(name: str) -> None:
    assert "SL020" in found(LOOP.format(name=name, test=name))


@pytest.mark.parametrize(("name", "test"), [("verbose", "verbose"), ("verbose", "verbose > 1"), ("debugLevel", "debugLevel > 2")])
def test_words_of_rarity_silence_nothing(name: str, test: str) -> None:
    assert "SL020" in found(LOOP.format(name=name, test=test))


READ_EARLY = """#include <cuda_runtime.h>

void {called}();

float run(const float* device, cudaStream_t stream) {{
    float* host;
    cudaMallocHost(&host, 4096);
    cudaMemcpyAsync(host, device, 4096, cudaMemcpyDeviceToHost, stream);
    {called}();
    float first = host[0];
    cudaStreamSynchronize(stream);
    return first;
}}
"""


@pytest.mark.parametrize("called", ["chart", "syncopate", "syncStream", "wait_and_sync"])
def test_no_word_says_that_a_function_waits(called: str) -> None:
    assert "SL005" in found(READ_EARLY.format(called=called), "cuda")


ACROSS = """import torch
from elsewhere import {made}


def step(x):
    side = torch.cuda.Stream()
    x = x.cuda() * 2
    with torch.cuda.stream(side):
        y = {made}(x)
    return y + 1
"""


def test_a_capital_letter_makes_no_class() -> None:
    assert found(ACROSS.format(made="Make")) == found(ACROSS.format(made="make"))
    assert "SL006" in found(ACROSS.format(made="Make"))


ALLOCATED = """#include <cuda_runtime.h>
#include <thrust/host_vector.h>
#include <thrust/universal_vector.h>

float run(const float* device, cudaStream_t stream) {{
    {kind} host(1000000);
    cudaMemcpyAsync(host.data(), device, 4000000, cudaMemcpyDeviceToHost, stream);
    float first = host[0];
    cudaStreamSynchronize(stream);
    return first;
}}
"""


@pytest.mark.parametrize(
    "kind",
    ["thrust::universal_host_pinned_vector<float>", "thrust::host_vector<float, thrust::cuda::experimental::pinned_allocator<float>>"],
)
def test_the_memory_of_a_container_is_what_its_row_says(kind: str) -> None:
    assert found(ALLOCATED.format(kind=kind), "cuda") == ["SL005"]

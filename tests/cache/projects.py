"""Small projects whose files rest on one another, and edits of what they rest on."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from pathlib import Path

from streamlint.discovery import files

PROJECT = {
    "app/__init__.py": """\
        import torch

        DEVICE = torch.device("cuda")


        def make_host(n):
            return torch.empty(n)
        """,
    "app/fit.py": """\
        import torch
        from app import make_host


        def fit(model):
            for _ in range(10):
                model(make_host(1 << 20).to("cuda", non_blocking=True))
        """,
    "app/loading.py": """\
        import torch  # x.cuda()

        PINNED = False


        def make_batch(n):
            return torch.empty(n, pin_memory=PINNED)
        """,
    "app/train.py": """\
        import torch
        from app.loading import make_batch


        def step(model):
            for _ in range(10):
                batch = make_batch(1 << 20)
                batch = batch.to("cuda", non_blocking=True)
                model(batch)
        """,
    "app/streams.py": """\
        import torch


        def overlap(x):
            side = torch.cuda.Stream()
            host = torch.empty(1 << 20, pin_memory=True)
            with torch.cuda.stream(side):
                host.copy_(x.cuda(), non_blocking=True)
            return host.sum()
        """,
    "app/use.py": """\
        import torch  # x.cuda()
        from app import streams


        def twice(x):
            return streams.overlap(x) + streams.overlap(x)
        """,
    "csrc/kernels.cu": """\
        #include "memory.h"
        #include <cuda_runtime.h>
        #define CUDA_API_PER_THREAD_DEFAULT_STREAM

        __global__ void scale(float* x) { x[threadIdx.x] *= 2; }

        void run(float* host) {
            float* device;
            for (int i = 0; i < 8; ++i) {
                cudaMalloc(&device, 1 << 20);
                cudaMemcpy(device, host, 1 << 20, cudaMemcpyHostToDevice);
                scale<<<1, 32>>>(device);
                LET_GO(device);
            }
        }
        """,
    "csrc/memory.h": "#pragma once\n#define LET_GO(p) cudaFree(p)\n",
    "csrc/bind.cpp": """\
        #include <pybind11/pybind11.h>
        #include <cuda_runtime.h>

        void wait() { cudaDeviceSynchronize(); }

        PYBIND11_MODULE(fast, m) { m.def("wait", &wait); }
        """,
    "app/native.py": """\
        import torch
        import fast


        def copy(x):
            host = torch.empty(1 << 20, pin_memory=True)
            host.copy_(x.cuda(), non_blocking=True)
            fast.wait()
            return host.sum()
        """,
    "app/views.py": """\
        import torch


        def to_host(x):
            return x.cuda().to("cpu", non_blocking=True).numpy()
        """,
    "app/held.py": """\
        import torch
        from app import DEVICE


        class Prefetcher:
            def __init__(self):
                self.side = torch.cuda.Stream()

            def load(self, x):
                with torch.cuda.stream(self.side):
                    y = x.to(DEVICE, non_blocking=True)
                torch.cuda.current_stream().wait_stream(self.side)
                return y
        """,
    "app/jobs.py": """\
        import torch
        import torch.multiprocessing as mp
        from app import setting


        def work(numbers):
            torch.ones(numbers, device="cuda").mul_(2)


        def main(model):
            model.cuda()
            child = mp.Process(target=work, args=(4,))
            child.start()
            child.join()
        """,
    "app/setting.py": "# x.cuda()\n",
    "app/facade.py": """\
        import torch
        from acme.device import get

        device = get()


        def scaled(rows, factor):
            side = device.Stream()
            table = torch.ones(rows, 4096, device="cuda")
            side.wait_stream(device.current_stream())
            with device.stream(side):
                table.mul_(factor)
            return table.sum()
        """,
    "app/plain.py": "def add(a, b):\n    return a + b\n",
    "setup.py": "from setuptools import setup\n\nsetup(name='app')\n",
}


EDITS: dict[str, dict[str, str | None]] = {
    "an imported file": {"app/loading.py": PROJECT["app/loading.py"].replace("PINNED = False", "PINNED = True")},
    "a package's __init__": {
        "app/__init__.py": """\
            import torch

            DEVICE = torch.device("cuda")


            def make_host(n):
                return torch.empty(n, pin_memory=True)
            """
    },
    "a new file that shadows an imported one": {
        "app/app/loading.py": "import torch  # x.cuda()\n\n\ndef make_batch(n):\n    return torch.empty(n, pin_memory=True)\n",
    },
    "a file that an import looked for": {"fast.py": "import torch\n\n\ndef wait():\n    pass  # no torch.cuda.synchronize\n"},
    "an imported file that goes": {"app/loading.py": None},
    "an imported file that names CUDA no more": {"app/loading.py": "def make_batch(n):\n    return n\n"},
    "an imported file that does not parse": {"app/loading.py": "import torch  # x.cuda()\ndef make_batch(n:\n"},
    "the C++ behind a binding": {"csrc/bind.cpp": PROJECT["csrc/bind.cpp"].replace("cudaDeviceSynchronize();", "(void)0;")},
    "a header": {"csrc/memory.h": "#pragma once\n#define LET_GO(p) (void)0  // no cudaFree\n"},
    "a header that comes": {"csrc/pybind11/pybind11.h": "#define PYBIND11_MODULE(a, b) void b##_module(cudaStream_t s)\n"},
    "a build file": {
        "setup.py": """\
            from setuptools import setup
            from torch.utils.cpp_extension import CUDAExtension

            setup(ext_modules=[CUDAExtension("k", ["csrc/kernels.cu"], extra_compile_args={"nvcc": ["--default-stream", "per-thread"]})])
            """
    },
    "a build file that comes": {
        "csrc/CMakeLists.txt": "add_library(k kernels.cu)\ntarget_compile_options(k PRIVATE --default-stream=per-thread)\n"
    },
    "rules that are ignored": {"pyproject.toml": '[tool.streamlint]\nignore = ["SL003"]\n'},
    "the default stream of the settings": {"pyproject.toml": '[tool.streamlint]\ndefault-stream = "per-thread"\n'},
    "the user's models": {
        "pyproject.toml": """\
            [tool.streamlint]

            [[tool.streamlint.models]]
            library = "torch"

            [[tool.streamlint.models.call]]
            names = "acme.device.get"
            effect = "namespace"
            name = "torch.cuda"
            """
    },
    "a suppression": {
        "app/streams.py": PROJECT["app/streams.py"].replace("host.sum()", "host.sum()  # streamlint: ignore[SL005] tried"),
    },
    "a comment for the whole file": {"csrc/kernels.cu": "// streamlint: ignore-file[SL003] known\n" + PROJECT["csrc/kernels.cu"].lstrip()},
    "a caller in another file": {"app/other.py": "import torch  # x.cuda()\nfrom app.views import to_host\n\nprint(to_host)\n"},
    "a use of an attribute in another file": {
        "app/other.py": "import torch  # x.cuda()\n\n\ndef f(loader, x):\n    loader.side.wait_stream(torch.cuda.default_stream())\n"
    },
    "how processes are started, said in another file": {
        "app/setting.py": "# x.cuda()\nimport multiprocessing\n\nmultiprocessing.set_start_method('spawn')\n"
    },
    "a copy of a file": {"app/streams_copy.py": PROJECT["app/streams.py"]},
    "lines that move": {"app/streams.py": "# one line more\n" + PROJECT["app/streams.py"].replace("\n        ", "\n")},
    "excluded files": {"pyproject.toml": '[tool.streamlint]\nextend-exclude = ["app/loading.py"]\n'},
    "a .gitignore": {".gitignore": "loading.py\n", ".git/HEAD": "ref: refs/heads/main\n"},
}
"""Edits by what they change. None takes a file away."""


def write(project: Mapping[str, str | None]) -> None:
    """Bring the files of the current folder to what is said; None takes one away."""
    for name, text in project.items():
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        if text is None:
            path.unlink(missing_ok=True)
        else:
            path.write_text(textwrap.dedent(text), encoding="utf-8")
    files.forget()

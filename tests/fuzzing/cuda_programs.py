"""CUDA C++ programs of the runtime, libraries, torch and pybind11, drawn from the models' vocabulary."""

from __future__ import annotations

from fuzzing.making import Maker
from fuzzing.vocabulary import Spot, calls
from hypothesis import strategies as st

HEAD = "#include <cuda_runtime.h>\n#include <thread>\n#include <vector>\n\n"
STATEMENTS = (
    "f_0<<<1, 64, 0, {stream}>>>({device}, 1);"
    " cudaMemcpyAsync({host}, {same device}, {n}, cudaMemcpyDeviceToHost, {same stream}); {same host}[0]++;",
    "cudaMemcpyAsync({vector}.data(), {device}, {n}, cudaMemcpyDeviceToHost, {stream}); float {new any} = {same vector}[0];",
    "cudaMemcpyAsync({device}, {host}, {n}, cudaMemcpyHostToDevice, {stream}); {same host}[0] = 2;",
    "cudaMemcpyAsync({device}, {host}, {n}, cudaMemcpyHostToDevice, {stream}); f_0<<<1, 64, 0, {stream}>>>({same device}, 1);",
    "f_0<<<1, 64, 0, {stream}>>>({device}, 1); cudaEventRecord({event}, {same stream}); cudaStreamWaitEvent({stream}, {same event}, 0);",
    "f_0<<<1, 64, 0, {stream}>>>({device}, 1); f_0<<<1, 64, 0, {stream}>>>({same device}, 1);",
    "for (int {new any} = 0; {it} < n; ++{it}) {{ float* {new device}; cudaMalloc(&{it}, 64); f_0<<<1, 1>>>({it}, 1); cudaFree({it}); }}",
    "float* {new device}; cudaMalloc(&{it}, {n});",
    "float* {new device} = nullptr; cudaMallocAsync((void**)&{it}, {n} * sizeof(float), {stream});",
    "float* {new host}; cudaMallocHost(&{it}, {n});",
    "float* {new host} = new float[{n}];",
    "std::vector<float> {new vector}({n});",
    "float* {new host} = (float*)malloc({n});",
    "cudaStream_t {new stream}; cudaStreamCreate(&{it});",
    "cudaStream_t {new stream}; cudaStreamCreateWithFlags(&{it}, cudaStreamNonBlocking);",
    "cudaStream_t {new stream} = 0;",
    "cudaEvent_t {new event}; cudaEventCreate(&{it});",
    "cudaEvent_t {new event}; cudaEventCreateWithFlags(&{it}, cudaEventDisableTiming);",
    "cudaMemcpyAsync({device}, {host}, {n}, cudaMemcpyHostToDevice, {stream});",
    "cudaMemcpyAsync({host}, {device}, {n}, cudaMemcpyDeviceToHost, {stream});",
    "cudaMemcpyAsync({vector}.data(), {device}, {n}, cudaMemcpyDeviceToHost, {stream});",
    "cudaMemcpy({host}, {device}, {n}, cudaMemcpyDeviceToHost);",
    "cudaMemsetAsync({device}, 0, {n}, {stream});",
    "cudaEventRecord({event}, {stream});",
    "cudaStreamWaitEvent({stream}, {event}, 0);",
    "cudaEventSynchronize({event});",
    "cudaStreamSynchronize({stream});",
    "cudaDeviceSynchronize();",
    "cudaLaunchHostFunc({stream}, {function}, {host});",
    "cudaStreamAddCallback({stream}, {function}, {host}, 0);",
    "cudaFree({device});",
    "cudaFreeHost({host});",
    "cudaFreeAsync({device}, {stream});",
    "cudaStreamDestroy({stream});",
    "cudaEventDestroy({event});",
    "f_0<<<{n}, 64, 0, {stream}>>>({device}, {n});",
    "f_0<<<1, 64>>>({device}, {n});",
    "f_0<<<dim3({n}), dim3(8, 8), {n}, {stream}>>>({host}, {n});",
    "{function}({device});",
    "auto {new device} = {function}({host}, {n});",
    "{host}[{n}] = 1.0f;",
    "float {new any} = {host}[0];",
    "float {new any} = {vector}[{n}];",
    'printf("%f\\n", {host}[{n}]);',
    "{stream} = {stream};",
    "{device} = {device} + {n};",
    "std::swap({device}, {device});",
    "auto {new any} = [&](float* p) {{ cudaStreamSynchronize({stream}); return p[0]; }};",
    "std::thread {new any}([=] {{ cudaDeviceSynchronize(); }}); {it}.join();",
    "cudaGraph_t {new any}; cudaStreamBeginCapture({stream}, cudaStreamCaptureModeGlobal);",
    "cudaStreamEndCapture({stream}, &{any});",
    "cudaSetDevice({n});",
    "CHECK(cudaStreamSynchronize({stream}));",
    "if (cudaStreamQuery({stream}) == cudaSuccess) return;",
    "thrust::device_vector<float> {new vector}({n});",
    "thrust::sort(thrust::cuda::par.on({stream}), {vector}.begin(), {vector}.end());",
    "at::cuda::CUDAStreamGuard {new any}(at::cuda::getStreamFromPool());",
    "torch::Tensor {new tensor} = torch::empty({n}, torch::kCUDA);",
    "auto {new tensor} = {tensor}.to(torch::kCPU, true);",
    "auto {new any} = {tensor}.item<float>();",
    "py::gil_scoped_release {new any};",
    "std::unique_ptr<float[]> {new vector}(new float[{n}]);",
    "static float* {new device} = nullptr;",
    "const auto {new any} = static_cast<float>({any});",
    "auto {new any} = {any} ? {any} : {any};",
    "{any}++;",
    "delete[] {host};",
    "return;",
    "break;",
    ";",
)
BLOCKS = (
    "if ({condition}) {~}",
    "if ({condition}) {~} else {~}",
    "for (int {new any} = 0; {it} < {n}; ++{it}) {~}",
    "for (auto& {new any} : {vector}) {~}",
    "while ({condition}) {~}",
    "do {~} while ({condition});",
    "switch ({any}) { case 1: {~} break; case 2: case 3: {~} default: {~} }",
    "try {~} catch (const std::exception& e) {~}",
    "{~}",
    "\n#ifdef USE_STREAMS\n{~}\n#else\n{~}\n#endif\n",
    "\n#if CUDART_VERSION >= 12000\n{~}\n#endif\n",
    "#pragma omp parallel for\nfor (int {new any} = 0; {it} < 4; ++{it}) {~}",
)
CONDITIONS = (
    "{any}",
    "!{any}",
    "{host} != nullptr",
    "cudaEventQuery({event}) != cudaSuccess",
    "cudaStreamQuery({stream}) == cudaErrorNotReady",
    "{n} > {any}",
    "true",
    "{any} && {any}",
)
VALUES = {
    "n": ("1", "2", "1024", "1 << 20", "n", "n * sizeof(float)"),
    "host": ("h", "nullptr"),
    "device": ("d", "nullptr"),
    "vector": ("w",),
    "stream": ("s", "0", "nullptr", "cudaStreamPerThread", "cudaStreamLegacy"),
    "event": ("e",),
    "any": ("n", "0", "h", "nullptr", "this", "d[0]"),
    "tensor": ("t",),
    "function": ("f_0", "done", "nullptr"),
}
LIKE = {"buffer": ("host", "device", "vector"), "any": ("any", "host", "device", "stream", "event", "vector")}
PARAMETERS = "float* h, float* d, cudaStream_t s, cudaEvent_t e, std::vector<float>& w, torch::Tensor t, int n"
START = (
    "__global__ void f_0(float* x, int n) { x[threadIdx.x] *= n; }\n"
    "#define CHECK(x) do { if ((x) != cudaSuccess) throw 1; } while (0)\n"
    "static void done(void* data) { *(int*)data = 1; }\n"
)


class Cuda(Maker):
    """One source."""

    def source(self) -> str:
        parts = [HEAD, START]
        for _ in range(self.number(1, 3)):
            parts.append(self.pick((self.function, self.function, self.class_, self.template, self.space, self.bound))())
        return "\n".join(parts)

    def kernels(self) -> str:
        """What stands in a string of Python."""
        if self.number(0, 1):
            return 'extern "C" __global__ void f_1(float* x, int n) { x[threadIdx.x] = n; }'
        return (HEAD + START + self.function()).replace("\\", "\\\\").replace("'''", "")

    def function(self, head: str = "void ", scope: str = "") -> str:
        name = self.new("f")
        before = {kind: list(names) for kind, names in self.known.items()}
        text = f"{head}{scope}{name}({PARAMETERS}) {{\n{self.block(2)}}}\n"
        self.known = before
        self.learn("function", name)
        return text

    def template(self) -> str:
        return "template <typename T, int N = 2>\n" + self.function("static T* ")

    def space(self) -> str:
        return f"namespace {self.new('a')} {{\n{self.function()}}}\n"

    def bound(self) -> str:
        text = self.function()
        made = self.known["function"][-1]
        return f'{text}PYBIND11_MODULE(m, mod) {{ mod.def("{made}", &{made}, py::call_guard<py::gil_scoped_release>()); }}\n'

    def class_(self) -> str:
        name = self.new("C")
        before = {kind: list(names) for kind, names in self.known.items()}
        stream, buffer, event = (self.new("a") for _ in range(3))
        for kind, member in (("stream", stream), (self.pick(("host", "device")), buffer), ("event", event)):
            self.learn(kind, member)
        text = (
            f"class {name} {{\n public:\n  {name}() : {buffer}(nullptr) {{ cudaStreamCreate(&{stream}); cudaMalloc(&{buffer}, 64); }}\n"
            f"  ~{name}() {{ cudaStreamDestroy({stream}); cudaFree({buffer}); }}\n  {self.function()}"
            f" private:\n  cudaStream_t {stream};\n  float* {buffer};\n  cudaEvent_t {event} = nullptr;\n}};\n"
        )
        self.known = before
        return text

    def block(self, depth: int) -> str:
        lines = []
        for _ in range(self.number(3, 12) if depth == 2 else self.number(1, 4)):
            which = self.number(0, 9)
            if which < 6:
                lines.append(self.fill(self.pick(STATEMENTS), self.value))
            elif which < 8:
                lines.append(self.call())
            elif depth:
                lines.append(self.compound(depth))
        return "".join(f"  {line}\n" for line in lines)

    def compound(self, depth: int) -> str:
        head, *rest = self.pick(BLOCKS).split("{~}")
        text = self.fill(head, self.value)
        for part in rest:
            text += "{\n" + self.block(depth - 1) + "}" + self.fill(part, self.value)
        return text

    def value(self, kind: str) -> str:
        if kind == "condition":
            return self.fill(self.pick(CONDITIONS), self.value)
        kinds = LIKE.get(kind, (kind,))
        names = [name for one in kinds for name in self.known.get(one, ())]
        made = [text for one in kinds for text in VALUES.get(one, ("n",))]
        return self.pick(names[-6:] * 3 + made)

    def call(self) -> str:
        """Any call of the models."""
        first, others = calls("cuda")
        call = self.pick(first) if self.number(0, 2) else self.pick(others)
        before = ""
        if call.type:
            receiver = self.new()
            before = (
                f"{call.type}{self.pick(('', '<float>', '*'))} {receiver}; "
                if self.number(0, 1)
                else f"auto {receiver} = {self.value(call.kind)}; "
            )
            callee = f"{receiver}.{call.name}"
        else:
            callee = call.name
        spots = ", ".join(self.argument(spot) for spot in call.positions)
        begun, ended = self.pick((("", ""), ("", ""), (f"auto {self.new()} = ", ""), ("CHECK(", ")")))
        return f"{before}{begun}{callee}({spots}){ended};"

    def argument(self, spot: Spot) -> str:
        value = self.value({"number": "n", "new": "any", "flag": "any", "device": "n"}.get(spot.kind, spot.kind))
        return f"&{value}" if spot.pointee else value


@st.composite
def sources(draw: st.DrawFn) -> str:
    """The text of one source."""
    return Cuda(draw).source()

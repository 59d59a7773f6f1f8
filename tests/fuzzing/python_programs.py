"""Python programs of torch, CuPy, numba, cuda-python, threads and C++ in strings, drawn from the models' vocabulary."""

from __future__ import annotations

from fuzzing import cuda_programs
from fuzzing.making import Maker
from fuzzing.vocabulary import Call, Spot, calls
from hypothesis import strategies as st

HEAD = (
    "import ctypes\nimport threading\nimport cupy as cp\nimport cupyx\nimport numpy as np\nimport torch\n"
    "import torch.multiprocessing as mp\nfrom torch.utils.data import DataLoader\n"
    "from cuda.bindings import driver, runtime\nfrom cuda.core import experimental as core\nfrom numba import cuda\n"
)
SHORT = {
    "builtins.": "",
    "cupy.": "cp.",
    "numpy.": "np.",
    "numba.cuda.": "cuda.",
    "torch.multiprocessing.": "mp.",
    "cuda.bindings.runtime.": "runtime.",
    "cuda.bindings.driver.": "driver.",
    "cuda.core.experimental.": "core.",
}
IMPORTED = {"ctypes", "threading", "cp", "cupyx", "np", "torch", "mp", "cuda", "driver", "runtime", "core"}
STATEMENTS = (
    "{new host} = {device}.to('cpu', non_blocking=True); print({it}[0])",
    "{host}.copy_({device}, non_blocking=True); {new any} = {same host}.sum()",
    "{host}.copy_({device}, non_blocking=True); {event}.record(); {same event}.synchronize(); {same host}.sum()",
    "{new device} = {host}.to('cuda', non_blocking=True); {same host}.fill_(0)",
    "{stream}.wait_stream({stream}); {device}.add_({device})",
    "{new event} = torch.cuda.Event(); {it}.record({stream}); {stream}.wait_event({it})",
    "{new array} = cp.asnumpy({device}, stream={stream}, blocking=False); print({it}.max())",
    "{new host} = torch.empty({n})",
    "{new host} = torch.empty({n}, pin_memory={flag})",
    "{new host} = {host}.pin_memory()",
    "{new device} = torch.zeros({n}, device='cuda')",
    "{new device} = {host}.to('cuda', non_blocking={flag})",
    "{new device} = {host}.cuda(non_blocking=True)",
    "{new host} = {device}.to('cpu', non_blocking={flag})",
    "{new device} = torch.mm({device}, {device})",
    "{new host} = torch.from_numpy({array})",
    "{new array} = {host}.numpy()",
    "{new array} = np.zeros({n})",
    "{new any} = {device}.item()",
    "{new any} = {host}[0]",
    "print({any})",
    "{host}.copy_({device}, non_blocking={flag})",
    "{device}.copy_({host}, non_blocking={flag})",
    "{device}.record_stream({stream})",
    "{host}.fill_({n})",
    "{host}[{n}] = {any}",
    "{new stream} = torch.cuda.Stream()",
    "{new stream} = torch.cuda.current_stream()",
    "{new stream} = cp.cuda.Stream(non_blocking={flag})",
    "{new stream} = cuda.stream()",
    "{new event} = torch.cuda.Event(enable_timing={flag})",
    "{new event} = {stream}.record_event()",
    "{event}.record({stream})",
    "{event}.record()",
    "{stream}.wait_event({event})",
    "{stream}.wait_stream({stream})",
    "{event}.synchronize()",
    "{stream}.synchronize()",
    "torch.cuda.synchronize()",
    "torch.cuda.set_stream({stream})",
    "torch.cuda.empty_cache()",
    "{new device} = cp.zeros({n})",
    "{new array} = cp.asnumpy({device}, stream={stream}, blocking={flag})",
    "{new device} = cp.asarray({array}, blocking={flag})",
    "{new array} = cupyx.empty_pinned({n})",
    "{device}.get(out={array}, stream={stream}, blocking=False)",
    "{device}.set({array}, stream={stream})",
    "{stream}.use()",
    "{stream}.launch_host_func({function}, {any})",
    "{new device} = cuda.to_device({array}, stream={stream})",
    "{device}.copy_to_host({array}, stream={stream})",
    "{new array} = cuda.pinned_array({n})",
    "{function}[{n}, 64, {stream}]({device})",
    "{new any} = {function}({any})",
    "{new any} = {function}({any}, {device})",
    "{new any} = [x.to('cuda', non_blocking=True) for x in {any}]",
    "{new any} = {device} if {condition} else {host}",
    "{new any} = {any} or {any}",
    "{new any} = {{'a': {any}, 'b': [{any}, {any}]}}",
    "{new any} = ({any}, *{any})",
    "{new host}, {new event} = {any}",
    "{name}.a_1 = {any}",
    "{new any} = {any}.a_1",
    "{new any} = lambda x, y=1: x.to('cuda', non_blocking=True)",
    "{new any} = threading.Thread(target={function}, args=({any},))",
    "{any}.start()",
    "{any}.join()",
    "{new any} = DataLoader({any}, batch_size={n}, pin_memory={flag}, num_workers={n})",
    "{new any} = torch.cuda.CUDAGraph()",
    "{any}.replay()",
    "{any}.put({device})",
    "{new any} = mp.Queue()",
    "{device}.backward()",
    "{any}.step()",
    "{name} += {any}",
    "({new any} := {any})",
    "{new any} = f'{{{any}}} {{{device}.sum():.2f}}'",
    "{new any} = cp.RawKernel(r'''{kernel}''', 'f_1')",
    "{new any} = ctypes.CDLL('./libnative.so')",
    "{any}.f_1({any}, ctypes.c_void_p({device}.data_ptr()), {n})",
    "del {name}",
    "assert {condition}",
    "{new any} = {any}[{n}:{n}]",
    "{new any} = [None] * {n}",
    "{any}.append({any})",
    "{any}[{n} % 2] = {device}",
    "{new any} = yield {any}",
)
BLOCKS = (
    "if {condition}:",
    "if {condition}:\n~\nelse:",
    "if {condition}:\n~\nelif {condition}:\n~\nelse:",
    "for {new any} in range({n}):",
    "for {new any} in {any}:",
    "for {new any}, {new device} in enumerate({any}):\n~\nelse:",
    "while {condition}:",
    "while not {event}.query():",
    "with torch.cuda.stream({stream}):",
    "with {stream}:",
    "with torch.cuda.stream({stream}):\n~\n{device}.add_(1)\n{stream}.synchronize()",
    "for {new any} in DataLoader({any}):\n    {new device} = {any}.cuda(non_blocking=True)\n~\n    {same any}.sum().backward()",
    "while True:\n~\n    if {event}.query():\n        break",
    "with torch.cuda.graph({any}, stream={stream}):",
    "with torch.no_grad(), torch.cuda.device({n}):",
    "with {any} as {new any}:",
    "try:\n~\nexcept RuntimeError as error:",
    "try:\n~\nfinally:",
    "match {any}:\n    case [{new any}, *_] if {condition}:\n~~\n    case None | 1:\n~~\n    case _:\n~~",
)
CONDITIONS = (
    "{any}",
    "not {any}",
    "{any} is None",
    "{device}.is_cuda",
    "{event}.query()",
    "{n} > {n}",
    "{any} == {n} and {any}",
    "True",
    "torch.cuda.is_available()",
)
VALUES = {
    "n": ("1", "2", "1024", "1 << 20", "len(x)", "-1", "0"),
    "flag": ("True", "False", "x"),
    "host": ("torch.ones(1024)", "torch.empty(8, pin_memory=True)"),
    "device": ("torch.ones(1024, device='cuda')", "cp.ones(64)"),
    "array": ("np.ones(64)", "[1, 2]"),
    "stream": ("torch.cuda.Stream()", "cp.cuda.Stream.null", "None", "torch.cuda.default_stream()"),
    "event": ("torch.cuda.Event()", "cp.cuda.Event()"),
    "any": ("None", "x", "[]", "(1)", "'text'", "b''", "...", "{}"),
    "name": (),
    "function": ("print", "(lambda x: x.synchronize())"),
}
LIKE = {
    "buffer": ("host", "device", "array"),
    "any": ("host", "device", "array", "stream", "event", "function", "any"),
    "name": ("host", "device", "stream", "event", "any"),
}


class Python(Maker):
    """One module."""

    def __init__(self, draw: st.DrawFn) -> None:
        super().__init__(draw)
        self.imports: set[str] = set()

    def module(self) -> str:
        lines: list[str] = []
        for _ in range(self.number(1, 3)):
            lines += self.pick((self.function, self.function, self.class_, self.kernel, self.own))()
            lines.append("")
        imports = "".join(f"import {name}\n" for name in sorted(self.imports))
        return HEAD + imports + "\n" + "\n".join(lines) + "\n"

    def own(self) -> list[str]:
        """Statements of the module itself."""
        return self.block("", 1)

    def function(self, indent: str = "", method: bool = False) -> list[str]:
        name = self.new("f")
        before = {kind: list(names) for kind, names in self.known.items()}
        kinds = [self.pick(("host", "device", "stream", "event", "array", "any")) for _ in range(self.number(0, 4))]
        parameters = [self.new() for _ in kinds]
        for kind, parameter in zip(kinds, parameters, strict=True):
            self.learn(kind, parameter)
        if method:
            self.learn("any", "self")
        mark = self.pick(("", "", "", "async "))
        lines = [
            f"{indent}{mark}def {name}({', '.join([*(['self'] if method else []), *parameters, 'x=None'])}):",
            *self.block(indent + "    ", 2),
        ]
        if self.number(0, 2) == 0:
            lines.append(f"{indent}    return {self.value('any')}")
        self.known = before
        self.learn("function", f"self.{name}" if method else name)
        return lines

    def kernel(self) -> list[str]:
        name = self.new("f")
        self.learn("function", name)
        return ["@cuda.jit", f"def {name}(x):", "    x[cuda.grid(1)] *= 2"]

    def class_(self) -> list[str]:
        name = self.new("C")
        base = self.pick(("", "(torch.nn.Module)", "(threading.Thread)"))
        before = {kind: list(names) for kind, names in self.known.items()}
        lines = [f"class {name}{base}:", "    def __init__(self, x=None):"]
        for _ in range(self.number(1, 4)):
            kind = self.pick(("host", "device", "stream", "event", "array", "any"))
            attribute = f"self.{self.new('a')}"
            lines.append(f"        {attribute} = {self.value(kind)}")
            self.learn(kind, attribute)
        for _ in range(self.number(1, 3)):
            lines += self.function("    ", method=True)
        self.known = before
        self.learn("function", name)
        return lines

    def block(self, indent: str, depth: int) -> list[str]:
        lines: list[str] = []
        for _ in range(self.number(3, 12) if depth == 2 else self.number(1, 4)):
            which = self.number(0, 9)
            if which < 6:
                lines.append(indent + self.statement())
            elif which < 8:
                lines.append(indent + self.call())
            elif depth > 0:
                lines += self.compound(indent, depth)
        return lines or [indent + "pass"]

    def compound(self, indent: str, depth: int) -> list[str]:
        lines: list[str] = []
        template = self.fill(self.pick(BLOCKS), self.value).split("\n")
        for line in [*template, *(["~"] if template[-1].endswith(":") and template[-1][0] != " " else [])]:
            if line.strip("~"):
                lines.append(indent + line)
            else:
                lines += self.block(indent + "    " * len(line), depth - 1)
        return lines

    def statement(self) -> str:
        return self.fill(self.pick(STATEMENTS), self.value)

    def value(self, kind: str) -> str:
        if kind == "condition":
            return self.fill(self.pick(CONDITIONS), self.value)
        if kind == "kernel":
            return cuda_programs.Cuda(self._draw, self.count).kernels()
        kinds = LIKE.get(kind, (kind,))
        names = [name for one in kinds for name in self.known.get(one, ())]
        made = [text for one in kinds for text in VALUES.get(one, ())] if kind != "name" else ["x"]
        return self.pick(names[-6:] * 3 + made)

    def call(self) -> str:
        """Any call of the models."""
        first, others = calls("python")
        call = self.pick(first) if self.number(0, 2) else self.pick(others)
        spots = [
            self.argument(spot)
            for spot in call.positions[: self.number(len(call.positions) - 1, len(call.positions)) if call.positions else 0]
        ]
        words = [f"{spot.keyword}={self.value_of(spot)}" for spot in call.keywords if spot.keyword and self.number(0, 1)]
        text = f"{self.callee(call)}({', '.join([*spots, *words])})"
        name = self.new()
        self.learn(self.pick(("any", "device", "host", "stream", "event")), name)
        return f"{name} = {text}"

    def callee(self, call: Call) -> str:
        if call.type:
            return f"{self.value(call.kind)}.{call.name}"
        for long, short in SHORT.items():
            if call.name.startswith(long):
                return short + call.name.removeprefix(long)
        head, dot, _ = call.name.partition(".")
        if dot and head not in IMPORTED:
            self.imports.add(head)
        return call.name

    def argument(self, spot: Spot) -> str:
        return self.value_of(spot)

    def value_of(self, spot: Spot) -> str:
        if spot.kind == "device":
            return self.pick(("'cuda'", "'cpu'", "0", "torch.device('cuda', 1)", "x"))
        return self.value({"number": "n", "new": "any"}.get(spot.kind, spot.kind))


@st.composite
def modules(draw: st.DrawFn) -> str:
    """The text of one module."""
    return Python(draw).module()

"""The closed vocabulary of model rows: what a call, an attribute, a type or a constant of a library means.

A model file is TOML. Its head says ``library`` (a short name), ``language`` (``python`` or ``cuda``), ``triggers`` (byte strings, 5
bytes or more and distinctive, at least one of which stands in any file that can hold a finding about this library) and ``version``
(1). Then come tables ``[[type]]``, ``[[call]]``, ``[[attribute]]``, ``[[constant]]``, ``[[step]]``.

``own_words = true`` says that its calls have names that no check asks for in its ``needs``: a function that makes one of them is looked at
all the same, as with the user's own rows. Without it, a row whose calls stand alone in a function is never met.

``seams`` are words of files that may call such a file's functions from Python: they count only where another file mentions CUDA.

**Names.** ``names`` is one name or a list. Python: the dotted path at its public home (``torch.cuda.Stream``), methods as
``Type.method`` (``torch.Tensor.copy_``). C++: as qualified in source (``cudaMemcpyAsync``, ``at::cuda::getCurrentCUDAStream``,
``thrust::sort``), methods as ``Type::method`` (``thrust::device_vector::resize``). ``*`` matches any run of characters; exact names win
over patterns, longer patterns over shorter.

**Selectors** say where a value is found in a call:

========== =========================================================================================================
``self``   the receiver of a method, or the object whose attribute is read
``2``      the argument at position 2 (self not counted, from 0)
``2:kw``   the same, or the keyword ``kw``
``:kw``    the keyword only
``&0``     what the pointer at position 0 points to (C++ out-parameters, ``cudaMalloc(&p, n)``)
``*``      all arguments
``result`` what the call returns
========== =========================================================================================================

``selector=word`` gives the value when the argument is left out: ``true``, ``false``, ``none``, ``null`` (the null stream), ``current``
(the library's current stream), ``own`` (the stream that the receiver was made with: numba arrays), or a number. A field that is a list
takes several selectors. In a switch, ``!selector`` is the opposite of the flag found there (``blocking = "!1:non_blocking=false"``),
and of a list (``["1", "2=false"]``, for overloads) the first that is true or false counts, else the last.
"""

from __future__ import annotations

import re

from streamlint.record import field, record, replace

VERSION = 1


class ModelError(ValueError):
    """A model row that does not fit the vocabulary; the message names the file, the row and the nearest right word."""


@record(frozen=True, slots=True)
class Selector:
    """Where a value stands in a call: see the table above."""

    kind: str  # "self", "argument", "pointee", "all", "result"
    position: int | None = None
    keyword: str | None = None
    default: str | None = None
    negated: bool = False  # in a switch: the opposite of the flag


@record(frozen=True, slots=True)
class Row:
    """One validated row. ``values`` holds its fields, selectors parsed."""

    names: tuple[str, ...]
    effect: str
    values: dict[str, object] = field(hash=False)
    library: str = ""
    source: str = ""

    def get(self, name: str, default: object = None) -> object:
        return self.values.get(name, default)


# Kinds of field: "selector", "selectors" (one or a list), "bool", "text", "number" (as text), "switch" (bool or selectors), "word a|b|c",
# "words or selector a|b".
# A stream selector: `*` is the argument that is a stream (its default only where none can be one: CUB overloads); one that meets a struct
# (cudaLaunchConfig_t, CUlaunchConfig) means the struct's field `stream` or `hStream`.
STREAM = "words or selector null|current|handle|ptds|none"

EFFECTS: dict[str, tuple[str, dict[str, str]]] = {
    # --- values that hold data -------------------------------------------------------------------------------------------------
    "factory": (
        "a new buffer from the library's own (caching) allocator",
        {
            "space": "word host|device|managed|like|argument",  # like: the space of `like`; argument: from `device`
            "like": "selector",
            "device": "selector",  # absent argument: host for torch
            "pin": "switch",  # pinned if true; a value that is not known counts as "pinned when possible"
            "memory": "word pageable|pinned|managed|unknown",  # of a host buffer
            "shape": "selectors",  # sizes, to know small buffers
            "data": "selector",  # host data or a literal that is copied in; on a device: a blocking upload unless `asynchronous`
            "alias": "bool",  # the result shares memory with `data` (torch.from_numpy, as_tensor on the same device)
            "dtype": "selector",
            "counts": "bool",  # one whole number after the other (arange): indices, and no data
            "raw": "bool",  # no pool: each call is cudaMalloc/cudaHostAlloc, each drop a free (numba)
            "type": "text",
            "result": "word buffer|first|second",  # first, second: the buffer stands there in a tuple (samples, rate)
        },
    ),
    "load": ("values of unknown structure from a file, on a device if one is named", {"device": "selector"}),
    "view": (
        "a view of the same memory",
        {
            "of": "selector",
            # strided: transposed, keeps pinning; some: a part, maybe gapped; repeated: gapped, unless `sizes` repeat nothing; elements: a
            # sequence of parts; contiguous: itself, or a new pageable copy if gapped; members: tensors that a module holds, the same ones
            # whenever they are asked for; named: each with its name; mapping: by their names
            "part": "word whole|strided|some|repeated|elements|contiguous|members|named|mapping",
            "axis": "selector",  # of a part: along the first axis it leaves no gaps, unless `step` passes over some
            "step": "selector",
            "sizes": "selector",  # of `expand`
            "type": "text",  # e.g. numpy.ndarray for Tensor.numpy()
            "shares": "word dlpack|interface",  # another library's memory; what is told of streams (``interpreter/neighbours.py``)
            "host_access": "bool",  # the host is about to read the memory (Tensor.numpy(), numpy.asarray(tensor))
            "sole": "bool",  # of an attribute: no other type has one of this name, so it tells what an unknown value is
        },
    ),
    "compute": (
        "work on its buffer arguments, where they are: a launch on the current stream for device buffers, a host read for host ones",
        {
            "reads": "selectors",  # default: self and all arguments
            "made": "bool",  # and what its object was made with
            "writes": "selectors",  # written in place (self for add_)
            "out": "selectors",  # written and returned if given
            "stream": STREAM,
            "host": "bool",  # always on the host (numpy functions)
            "result": "word buffer|sequence|scalar|none|self",
            "several": "selectors",  # flags: where one is set, the result is a sequence (unique with return_inverse)
            "waits": "bool",  # on device buffers it also makes the host wait for the current stream (nonzero, masked_select)
            "scalars": "selectors",  # arguments that have to be numbers: of a tensor the number is fetched (torch's Scalar, float)
            "compares": "bool",  # it asks for the truth of a comparison of its arguments, wherever they are (the builtin `max`)
            "waits_without": "selector",  # it waits only where this argument is left out (one_hot without num_classes)
            "counts": "bool",  # indices or numbers of things, whatever is worked on (argsort, nonzero, bincount)
            "cast": "bool",  # the tensor itself where it has the type already
            "named": "bool",  # arguments go by name: where one does not, another type's method is called
            "gradients": "bool",  # it reads the gradients that backward passes have left as well
            "waits_on": "selector",  # … and only where this one is a tensor (repeat_interleave by a tensor of counts)
            "type": "text",
        },
    ),
    "read": (
        "the host reads a buffer; for a device buffer it first waits for the current stream (Tensor.item, tolist, print)",
        {
            "of": "selectors",
            "stream": STREAM,
            "result": "word scalar|sequence|none",
            "host_memory": "word pinned|pageable",  # what a device value is copied to (pinned: a number, by way of the library's own)
        },
    ),
    "write": (
        "the host writes a buffer (numpy.copyto, memcpy, std::fill)",
        {"of": "selector", "reads": "selectors", "count": "selector"},  # count: the elements that it has from now on (resize)
    ),
    "transfer": (
        "moves a value to another memory and returns it there (Tensor.to, cupy.asnumpy, cuda.to_device); no copy if it is there already",
        {
            "of": "selector",
            "to": "words or selector device|host|argument",  # argument: decide by `device` among the arguments (Tensor.to overloads)
            "device": "selectors",
            "dtype": "selectors",
            "asynchronous": "switch",
            "stream": STREAM,
            "out": "selector",  # destination given by the caller
            "host_memory": "word pinned|pageable|pinned-if-asynchronous",  # what a new host destination is made of
            "staged": "bool",  # pageable sources go through the library's own pinned memory (cupy.asarray)
            "raw": "bool",  # a new device destination is a plain cudaMalloc (numba)
            "leaves": "bool",  # each tensor in a container (accelerate.utils.send_to_device)
            "type": "text",
        },
    ),
    "copy": (
        "copies between two buffers or pointers at hand",
        {
            "dst": "selector",
            "src": "selector",
            "bytes": "selector",
            "direction": "words or selector h2d|d2h|d2d|h2h|peer|infer",
            "to_device": "selector",
            "from_device": "selector",
            "asynchronous": "switch",  # asked to be asynchronous; false: host-synchronous as CUDA documents for the direction
            "stream": STREAM,
        },
    ),
    "memset": ("fills device memory", {"dst": "selector", "bytes": "selector", "asynchronous": "switch", "stream": STREAM}),
    "pin": ("a pinned copy of a host buffer (Tensor.pin_memory); itself if pinned", {"of": "selector", "type": "text"}),
    "register": ("page-locks memory at hand (cudaHostRegister)", {"of": "selector", "bytes": "selector"}),
    "unregister": ("undoes it", {"of": "selector"}),
    # --- raw allocation: what SL003 is about -------------------------------------------------------------------------------------
    "alloc": (
        "an allocation that goes to the driver (memory device, pinned, managed), or plain host memory (pageable)",
        {
            "memory": "word device|pinned|managed|pageable",
            "into": "selector",  # result, or &0
            "bytes": "selector",
            "stream": STREAM,  # stream-ordered (cudaMallocAsync): no SL003
            "owned": "bool",  # an object: freed when its last reference goes
        },
    ),
    "free": ("its counterpart", {"of": "selector", "memory": "word device|pinned|managed|pageable", "stream": STREAM}),
    "trim": ("gives cached memory back to the driver (torch.cuda.empty_cache, free_all_blocks)", {}),
    # --- work --------------------------------------------------------------------------------------------------------------------
    "launch": (
        "a kernel or a library's device work",
        {
            "stream": STREAM,  # "handle": the stream bound to the library handle in `handle`
            "handle": "selector",
            "kernel": "selector",  # a kernel of the project: what it is given follows it
            "packed": "selector",  # … or is in this array, by its addresses
            "given": "selector",  # what a kernel is given that its object compiles
            "reads": "selectors",
            "writes": "selectors",
            "updates": "selector",  # what it writes among the arguments that its object was made with (an optimizer's parameters)
            "gradients": "bool",  # it reads the gradients that backward passes have left as well
            "size_query": "selector",  # no work where this argument is null (CUB)
            "waits": "bool",  # the host waits for it (thrust)
            "makes": "bool",  # on memory that the path has made and not used yet it is a part of making it: no work by itself
            "long": "bool",  # it takes long by what it does: it sorts in scratch memory of its own, or meets other processes
            "policy": "bool",  # thrust: the stream is in the policy, if the first argument is one
            "graph": "bool",  # a graph is launched
        },
    ),
    "callback": (
        "a host function that runs in stream order on a driver thread",
        {"stream": STREAM, "function": "selector", "arguments": "selectors", "style": "word data|cupy-add|numba|params"},
    ),
    # --- streams and events --------------------------------------------------------------------------------------------------------
    "stream": (
        "creates a stream",
        {
            "into": "selector",
            "blocking": "switch",  # ordered with the null stream
            "flags": "selector",  # C++ and runtime APIs: cudaStreamNonBlocking in it means not blocking
        },
    ),
    "stream_of": (
        "a stream that exists already",
        {
            "which": "word current|default|null|ptds|external|attribute|pool",
            "from": "selector",
            "library": "text",
            "into": "selector",
            "no_wait": "bool",  # a policy under which algorithms leave the host alone where they can (thrust)
        },
    ),
    "set_stream": ("makes it the current stream of the thread", {"stream": STREAM, "library": "text"}),
    "scope": (
        "a context manager in which a stream is current (torch.cuda.stream(s)); None changes nothing; `synchronizes`: its end waits",
        {"stream": "selector", "library": "text", "synchronizes": "bool"},
    ),
    "event": (
        "creates an event; with timing unless `flags` disable it",
        {"into": "selector", "timing": "switch", "flags": "selector"},
    ),
    "elapsed": ("the time between two events", {"into": "selector"}),
    "clock": ("the host looks at a clock", {}),
    "record": (
        "records an event; makes one if `event` is absent, and returns it",
        {"event": "selector", "stream": STREAM, "creates": "bool"},
    ),
    "wait": ("a stream waits for an event or a stream; the host does not", {"stream": STREAM, "on": "selector"}),
    "synchronize": ("the host waits", {"of": "words or selector device|current|null"}),
    "query": ("asks without waiting; a loop until true is a wait", {"of": "selector"}),
    "capture": (
        "stream capture (CUDA graphs) begins or ends; scope: a context manager; without `stream`: the current one; relax: the thread may"
        " make unsafe calls from now on; asked: is a stream being captured (the answer is returned, or stored in `into`)",
        {
            "part": "word begin|end|scope|relax|asked",
            "stream": STREAM,
            "graph": "selector",
            "mode": "selector",  # its default word: global, thread_local or relaxed
            "into": "selector",
        },
    ),
    "collective": (
        "a collective of several processes (an opaque call that writes behind the current stream); wait: the stream waits for its handle,"
        " with `timeout` the host",
        {
            "part": "word issue|wait",
            "writes": "selectors",
            "asynchronous": "switch",
            "timeout": "selector",
            "result": "word handle|sequence",  # of handles
        },
    ),
    "destroy": ("destroys a stream, event, handle or graph (no memory: that is `free`)", {"of": "selector"}),
    # --- objects -----------------------------------------------------------------------------------------------------------------
    "object": (
        "a new object of `type` that remembers its arguments",
        # device: where a module's parameters are made; holds: it is given modules, and calls one after the other, or lists them
        # text, kernel: what it compiles, and which kernel of it it is; else its receiver's text
        {"type": "text", "into": "selector", "device": "selector", "holds": "word chain|list", "text": "selector", "kernel": "selector"},
    ),
    "bind_stream": ("a library handle works on a stream from now on (cublasSetStream)", {"handle": "selector", "stream": STREAM}),
    "loader": (
        "a loader of batches whose leaves are pinned if `pin`",
        {
            "pin": "switch",
            "dataset": "selector",
            "collate": "selector",
            "workers": "selector",
            "worker_init": "selector",
            "context": "selector",  # a start method or a context of multiprocessing
            "space": "word device",  # its batches are on the device
        },
    ),
    "prepare": ("a framework gives its arguments back, ready for its device: loaders give batches there, modules work there", {}),
    "namespace": ("a module of a library under its own name, here `name` (torch.get_device_module())", {"name": "text", "of": "selector"}),
    "split": ("parts of a dataset (random_split)", {}),
    "module_to": (
        "moves a module's parameters and returns it",
        {"of": "selector", "to": "word device|host|argument", "device": "selectors", "asynchronous": "switch"},
    ),
    "device": ("a device value (torch.device, cupy.cuda.Device)", {"from": "selector"}),
    "facade": ("an object that stands for a module of the library: its members are that module's", {"module": "text"}),
    "placed": ("asks whether a buffer is on a device: the arm that is taken knows", {"of": "selector"}),
    "pinned_options": ("tensor options (C++) that ask for pinned memory where `pin` is true", {"pin": "switch"}),
    "same": (
        "returns this argument (torch.nn.Parameter, ctypes casts, std::move), or stores it in `into`. `moves`: made by a constructor,"
        " it goes wherever its owner goes",
        {"of": "selector", "into": "selector", "moves": "bool"},
    ),
    "collect": ("the garbage collector runs: what nobody holds any more is let go", {}),
    "move": ("the argument; a smart pointer is left empty (std::move)", {"of": "selector"}),
    "swap": ("exchanges what two variables hold (std::swap)", {"first": "selector", "second": "selector"}),
    "none": (
        "no effect on memory, streams or order; the result is a plain value. `on_device`: the call shows that this buffer is on a device",
        {"result": "word scalar|none|sequence", "on_device": "selector"},
    ),
    "record_use": (
        "the allocator waits for this stream before it gives the buffer's memory out again (Tensor.record_stream); it touches no data",
        {"of": "selector", "stream": STREAM},
    ),
    "setting": (
        "changes how later calls behave",
        {"what": "word allocator|start-method|ptds|no-cache|peer-access|device", "value": "selector"},
    ),
    "block": (
        "the host blocks until another thread lets it go",
        {"what": "word join|result|condition|queue|lock", "of": "selector"},
    ),
    "thread": (
        "runs a function on another thread, or in another process",
        {
            "function": "selector",
            "arguments": "selectors",  # styles object, packed and rank: a tuple, then a dict
            # object: `start` runs it; call: at once, with what stands behind the function; each: with an element of each of these;
            # packed: with a tuple; rank: with a number and a tuple
            "style": "word object|call|each|packed|rank",
            "kind": "word thread|process",
            "pool": "selector",  # what runs it, where that decides the kind
            "awaited": "bool",  # whoever calls does nothing else meanwhile
            "type": "text",
        },
    ),
    "pool": ("a pool of threads or processes", {"type": "text", "workers": "selector"}),
    "start": ("starts a thread or a process that was made before", {"kind": "word thread|process"}),
    "touch": ("uses the device, and moves and orders nothing", {}),
    "put": (
        "hands a value to another process, or (local) to another thread",
        {"of": "selector", "feeder": "bool", "local": "bool"},  # feeder: a thread of the queue's own pickles it
    ),
    "get": ("takes a value from another process or thread", {"local": "bool"}),
    "pipe": ("the two ends of a pipe between processes", {"type": "text"}),
    "gil": (
        "Python's GIL is let go (drop), taken (take), or as it was before (back); scope: for as long as the object lives",
        {"part": "word drop|take|back", "scope": "bool", "type": "text"},
    ),
    "bind": ("a method of a module or class that makes functions known to Python, which calls them with the GIL held", {}),
    "operator": ("a method that makes functions known to PyTorch's dispatcher, which lets the GIL go around them", {}),
    "extension": (
        "C++ as a Python module: compiled from sources (source), from strings (inline), or a shared library whose functions are called by "
        "their symbols: its calls let the GIL go (symbols), or hold it (held). memory: the address of an argument's memory",
        {"part": "word source|inline|symbols|held|memory"},
    ),
    "unpack": (
        "Python's arguments are given to C variables from this position on (PyArg_ParseTuple)",
        {"of": "selector", "from": "number"},
    ),
    "exit": ("does not return", {}),
    "unknown": (
        "known to exist, effect deliberately not modelled: an opaque call; awaits: whom the host waits for in it (other processes)",
        {"awaits": "text"},
    ),
}

NEEDED = {"gil": ("part",)}  # by effect: fields without which a row says nothing

TYPE_KINDS = ("buffer", "pointer", "stream", "event", "handle", "module", "loader", "device", "graph", "object", "scope")

# [[type]]: names, kind, base; for kind "buffer": space, memory, raw (C++ containers that call cudaMalloc themselves);
# for kind "handle": holds_stream; for kind "object": fields
TYPE_FIELDS = {
    "kind": "word " + "|".join(TYPE_KINDS),
    "base": "text",
    "space": "word host|device|managed|unknown",
    "memory": "word pageable|pinned|managed|unknown",
    "raw": "bool",
    "holds_stream": "bool",  # who is given one is given the stream to work on (RAFT's resources)
    "fields": "texts",  # of a struct that is made from a list of values, in their order
}

# [[step]]: names of base classes (`*` matches any run), their methods that run once in each step, and which parameters are on the device
STEP_FIELDS = {
    "methods": "texts",
    "unproven": "texts",  # how the name of a base that is out of view ends
    "on_device": "selectors",
    "forward": "bool",  # they compute for whoever calls them, also where nothing is trained
}

# [[constant]]: names, value
CONSTANTS = (
    *("h2d", "d2h", "d2d", "h2h", "infer", "success", "non-blocking", "blocking", "null-stream", "ptds-stream", "per-thread"),
    *("policy", "host-policy"),  # of thrust: on the device, and on the host
    *("captured", "not-captured"),  # the state of a stream capture
    *("cuda-device", "cpu-device"),  # torch::kCUDA, torch::kCPU
    "absent",  # None in Python
    "other",
)

_SELECTOR = re.compile(r"^(?:(self|result|\*)|(&)(\d+)|(\d+)?(?::(\w+))?)(?:=([\w-]+))?$")


def parse_selector(text: str) -> Selector:
    """``"2:kw=null"`` as a Selector.

    Raises ModelError if the text is no selector.
    """
    found = _SELECTOR.match(text)
    if not found or not text or text.startswith("="):
        raise ModelError(f"'{text}' is no selector: write self, result, *, &0, 2, 2:kw or :kw, with =default if wanted")
    word, pointee, pointer, position, keyword, default = found.groups()
    if word:
        kind = {"self": "self", "result": "result", "*": "all"}[word]
        return Selector(kind, default=default)
    if pointee:
        return Selector("pointee", int(pointer), default=default)
    return Selector("argument", int(position) if position else None, keyword, default)


def nearest(word: str, known: list[str] | tuple[str, ...]) -> str:
    """A hint that names the nearest known word, or all of them where there are few."""
    import difflib  # for mistakes alone

    close = difflib.get_close_matches(word, known, n=1)
    return f"did you mean '{close[0]}'?" if close else "known: " + ", ".join(known)


def parse_field(kind: str, value: object) -> object:
    """A raw TOML value as the field kind wants it.

    Raises ModelError with the reason.
    """
    if kind == "bool":
        if not isinstance(value, bool):
            raise ModelError(f"{value!r} must be true or false")
        return value
    if kind == "switch":
        if isinstance(value, bool):
            return value
        if isinstance(value, list):
            if not value:
                raise ModelError("an empty list names no flag")
            return tuple(parse_selector(str(item)) for item in value)
        text = str(value)
        return replace(parse_selector(text[1:]), negated=True) if text.startswith("!") else parse_selector(text)
    if kind == "text":
        return str(value)
    if kind == "number":
        if not re.fullmatch(r"[0-9]{1,4}", str(value)):
            raise ModelError(f"{value!r} must be a number")
        return str(value)
    if kind == "texts":
        return tuple(str(item) for item in (value if isinstance(value, list) else [value]))
    if kind == "selector":
        return parse_selector(str(value))
    if kind == "selectors":
        values = value if isinstance(value, list) else [value]
        return tuple(parse_selector(str(item)) for item in values)
    words = kind.rsplit(" ", 1)[1].split("|")
    if str(value) in words:
        return str(value)
    if kind.startswith("words or selector") and re.match(r"^[\d:&*]|^self|^result", str(value)):
        return parse_selector(str(value))
    raise ModelError(f"'{value}' is unknown; {nearest(str(value), words)}")

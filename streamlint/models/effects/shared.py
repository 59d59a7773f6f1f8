"""The keys that many effects take."""

from __future__ import annotations

from streamlint.models.keys import key

# `*` is the argument that is a stream (its default only where none can be one: CUB overloads); a place that holds a struct
# (cudaLaunchConfig_t, CUlaunchConfig) means the struct's field `stream` or `hStream`.
STREAMS = "null current handle ptds none"

ON = key("stream", "word or place", "The stream that the work is queued on.", STREAMS)
RETURNS = key("type", "type", "The type of the result.")
BYTES = key("bytes", "place", "The size in bytes.")
INTO = key("into", "place", "Where the new object is stored: the result, or an out-parameter (`&0`).")
GRADIENTS = key("gradients", "bool", "The work also reads the gradients that backward passes have left.")
LIBRARY = key("library", "library", "The library whose current stream is meant, where it is not the row's own.")
INSTEAD = key("instead", "text", "What gives the same and does not make the host wait, as the help says it: `pass num_classes`.")
SCALARS = key("scalars", "places", "Arguments that have to be numbers: the number of a tensor is fetched from the device.")
WAITS = (
    key("waits", "bool", "On device buffers the host also waits for the current stream (`nonzero`, `masked_select`)."),
    key("waits_without", "places", "The host waits only where none of these arguments is given (`one_hot` without `num_classes`)."),
    key("waits_on", "places", "The host waits only where one of these arguments is a tensor of the device (`repeat_interleave`)."),
    key("waits_if", "cases", "The host waits where one of these arguments has the value that stands here (`check_errors=True`)."),
    key("sized", "bool", "It waits for the size of its result, which depends on the data (`nonzero`)."),
)
COMMUNICATOR = key(
    "communicator", "place", "The communicator or process group whose ranks all make the call; the default one where it is left out."
)
RENEWS = (
    key(
        "renews",
        "word",
        "The parts of the object that get other memory, or lose it: the weights or the gradients of a module or of an optimizer's"
        " parameters, the state of an optimizer.",
        "weights gradients state",
    ),
    key("renews_if", "switch", "They do so only with this flag."),
)
LATER = key("later", "bool", "The functions that the call is given run later than it: when what it makes ends, or when they are asked for.")
DEVICES = key("devices", "bool", "The call counts devices, or makes one the current one: a loop around it goes over devices.")
COMPILING = (
    key("compiles", "place", "The function or module that a compiler takes apart and puts together anew (`torch.compile`)."),
    key("compiled_if", "cases", "Where one of these arguments is given it has to have this value, or nothing is compiled."),
    key("uncompiled", "place", "The function that compilers leave as it is (`torch.compiler.disable`)."),
    key("asks_compiling", "bool", "The result says whether the code is being compiled."),
)
COMPILED = (
    key(
        "compiled",
        "word",
        "What becomes of the call in code that a compiler takes apart: it is left out, or the compiler fails.",
        "dropped fails",
    ),
    key("compiled_without", "place", "That is so only where this argument is left out."),
)
CHOOSES = key("chooses", "place", "The device that the call, or a `with` block of its result, makes the current one of the thread.")
NAMES_DEVICE = key("names_device", "places", "The arguments that may name a device; else the call means the thread's current one.")

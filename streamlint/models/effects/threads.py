"""Effects of threads, processes and Python's own machinery."""

from __future__ import annotations

from streamlint.models.effects.shared import CHOOSES, DEVICES, INTO, RENEWS, RETURNS
from streamlint.models.keys import Effect, key

THREADS = (
    Effect(
        "block",
        "makes the host wait for another thread",
        (
            key("what", "word", "What the host waits for.", "join result condition queue lock"),
            key("of", "place", "The object that it waits for; the receiver if left out."),
        ),
    ),
    Effect(
        "thread",
        "runs a function on another thread or in another process",
        (
            key("function", "place", "The function.", needed=True),
            key("arguments", "places", "The arguments of the function; for `object`, `packed` and `rank` a tuple, then a dict."),
            key(
                "style",
                "word",
                "`object`: `start` runs it; `call`: it runs at once with the arguments behind the function; `each`: with an element of"
                " each of them; `packed`: with a tuple; `rank`: with a number and a tuple.",
                "object call each packed rank",
            ),
            key("kind", "word", "What runs the function.", "thread process"),
            key("pool", "place", "The pool that runs the function, where the pool decides the kind."),
            key("joins", "bool", "The end of the object that stands for the thread waits for it."),
            key("awaited", "bool", "The caller does nothing else meanwhile."),
            key("method", "word", "How the process is started, where the call decides it.", "fork spawn"),
            RETURNS,
        ),
    ),
    Effect(
        "call",
        "calls a function with the arguments behind it, and returns what it gives (`torch.utils.checkpoint.checkpoint`)",
        (
            key("function", "place", "The function.", needed=True),
            key("keeps", "places", "The arguments that are not passed on."),
            key(
                "gives",
                "places",
                "The arguments that the function is given, where it runs often, and what the call returns is not its result.",
            ),
        ),
    ),
    Effect(
        "pool",
        "makes a pool of threads or processes",
        (
            RETURNS,
            key("workers", "place", "The number of threads or processes."),
            key("kind", "word", "What works in the pool; threads if left out.", "thread process"),
            key("lazy", "bool", "The pool starts its processes when it is first given work."),
            key("initializer", "place", "A function that each thread or process runs first."),
            key("context", "place", "The context that says how processes are started."),
        ),
    ),
    Effect(
        "start",
        "starts a thread or process that was made before",
        (key("kind", "word", "What is started.", "thread process"),),
    ),
    Effect("touch", "uses the device, and moves and orders nothing", (DEVICES, CHOOSES)),
    Effect(
        "put",
        "sends a value to another process or thread",
        (
            key("of", "place", "The value."),
            key("feeder", "bool", "A thread of the queue's own pickles the value."),
            key("local", "bool", "The value goes to a thread of the same process."),
        ),
    ),
    Effect(
        "get",
        "receives a value from another process or thread",
        (key("local", "bool", "The value comes from a thread of the same process."),),
    ),
    Effect("pipe", "makes the two ends of a pipe between processes", (RETURNS,)),
    Effect(
        "gil",
        "releases or takes Python's GIL",
        (
            key("part", "word", "`drop` releases it, `take` takes it, `back` restores it.", "drop take back", needed=True),
            key("scope", "bool", "This holds for as long as the object lives."),
            RETURNS,
        ),
    ),
    Effect("bind", "makes functions known to Python, which calls them with the GIL held (a method of a module or class)"),
    Effect("operator", "makes functions known to PyTorch's dispatcher, which releases the GIL around them"),
    Effect(
        "extension",
        "makes C++ a Python module",
        (
            key(
                "part",
                "word",
                "`source`: compiled from files; `inline`: from strings; `symbols`: a shared library whose calls release the GIL; `held`:"
                " one whose calls hold it; `memory`: the address of an argument's memory.",
                "source inline symbols held memory",
                needed=True,
            ),
            key("functions", "place", "The names of the functions that are bound."),
            key("name", "place", "The name of the module that is compiled."),
        ),
    ),
    Effect(
        "unpack",
        "gives Python's arguments to C variables (`PyArg_ParseTuple`)",
        (
            key("of", "place", "The tuple of arguments.", needed=True),
            key("from", "number", "The position of the first variable.", needed=True),
        ),
    ),
    Effect("exit", "does not return"),
    Effect(
        "unknown",
        "exists, with an effect that is deliberately not modelled: an unknown call",
        (
            key("awaits", "text", "Whom the host waits for in the call (other processes)."),
            key("library_of", "place", "The array that decides which library, a module, the result is (`cupy.get_array_module`)."),
            key("exports", "place", "The event for which the call gives a handle that another process opens."),
            key("elsewhere", "bool", "It belongs to devices that are no CUDA devices."),
            INTO,
            *RENEWS,
        ),
    ),
)

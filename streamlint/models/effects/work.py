"""Effects that queue or order work: kernels, streams and events."""

from __future__ import annotations

from streamlint.models.effects.shared import COMMUNICATOR, COMPILED, GRADIENTS, INTO, LIBRARY, NAMES_DEVICE, ON, RETURNS, STREAMS
from streamlint.models.keys import Effect, key

OPTIONS = key("options", "place", "An object of options that may say that the event measures time.")

WORK = (
    Effect(
        "launch",
        "queues a kernel, or a library's work on the device",
        (
            key("stream", "word or place", "The stream; `handle`: the one that the library handle in key `handle` is bound to.", STREAMS),
            key(
                "handle",
                "place",
                "The library handle that is bound to a stream; left out where the library has one stream for all its calls.",
            ),
            key("context", "text", "The field with the stream, in the struct that is the last argument (NPP)."),
            key("kernel", "place", "The kernel, if it is one of the project; the arguments that it is given follow it."),
            key("packed", "place", "An array with the addresses of the kernel's arguments."),
            key("given", "place", "The arguments of a kernel that its object compiles."),
            key("reads", "places", "The buffers that are read."),
            key("writes", "places", "The buffers that are written."),
            key("updates", "place", "The part that is written of the arguments that its object was made with (an optimizer's parameters)."),
            GRADIENTS,
            key("size_query", "place", "The call queues no work where this argument is null (CUB)."),
            key("waits", "bool", "The host waits for the work (Thrust)."),
            key("told", "place", "Where the result is stored: if that is memory of the device, the host does not wait (cuBLAS)."),
            key("makes", "bool", "On memory that is new and not yet used the work is a part of making it."),
            key("long", "bool", "The work takes long: it sorts in scratch memory, or meets other processes."),
            COMMUNICATOR,
            key("policy", "bool", "The first argument is an execution policy that may hold the stream (Thrust)."),
            key("in_place", "bool", "What the first argument behind the policy leads to is written (Thrust)."),
            key("graph", "bool", "The call launches a graph."),
            key(
                "attributes",
                "text",
                "The field of the launch configuration that holds attributes.",
            ),
            key("early", "text", "The field of an attribute that lets the kernel begin before the one ahead of it has ended."),
        ),
    ),
    Effect(
        "in_kernel",
        "is a function or instruction of kernels, which the host does not call",
        (
            key(
                "what",
                "word",
                "`wait`: the kernel waits for those before it on the stream; `trigger`: it lets the next one begin; `plain`: neither.",
                "wait trigger plain",
                needed=True,
            ),
            key("reads", "places", "The pointers through which it reads."),
            key("writes", "places", "The pointers through which it writes."),
        ),
    ),
    Effect(
        "callback",
        "queues a host function, which a thread of the driver runs in stream order",
        (
            key("stream", "word or place", "The stream that the function waits for.", STREAMS),
            key("function", "place", "The function.", needed=True),
            key("arguments", "places", "The arguments that the function is given."),
            key("style", "word", "How the function is given its arguments.", "data cupy-add numba params"),
            key("takes_gil", "bool", "The library takes Python's GIL before it calls the function, whatever that is."),
        ),
    ),
    Effect(
        "stream",
        "creates a stream",
        (
            INTO,
            key("blocking", "switch", "The stream is ordered with the null stream."),
            key("flags", "place", "The flags: `cudaStreamNonBlocking` in them makes a non-blocking stream."),
            NAMES_DEVICE,
        ),
    ),
    Effect(
        "stream_of",
        "returns a stream that exists already",
        (
            key("which", "word", "Which stream it is.", "current default null ptds external attribute pool", needed=True),
            key("from", "place", "The object or the raw handle that the stream comes from."),
            LIBRARY,
            INTO,
            key("no_wait", "bool", "Algorithms that run with it wait as little as they can (Thrust's `par_nosync`)."),
            NAMES_DEVICE,
        ),
    ),
    Effect(
        "set_stream",
        "makes a stream the current one of the thread",
        (key("stream", "word or place", "The stream.", STREAMS, needed=True), LIBRARY),
    ),
    Effect(
        "scope",
        "returns a context manager in which a stream is current; `None` as stream changes nothing (`torch.cuda.stream`)",
        (
            key("stream", "place", "The stream.", needed=True),
            LIBRARY,
            key("synchronizes", "bool", "The host waits for the stream at the end of the scope."),
        ),
    ),
    Effect(
        "event",
        "creates an event",
        (
            INTO,
            key("timing", "switch", "The event measures time."),
            OPTIONS,
            key("flags", "place", "The flags: `cudaEventDisableTiming` in them makes an event that measures no time."),
        ),
    ),
    Effect("elapsed", "returns the time between two events", (key("into", "place", "Where the time is stored (`&0`)."),)),
    Effect("clock", "reads a clock of the host"),
    Effect(
        "record",
        "records an event on a stream",
        (
            key("event", "place", "The event; where it is left out, a new one is made and returned."),
            ON,
            key("creates", "bool", "The call returns the event."),
            key("timing", "bool", "An event that the call makes measures time."),
            OPTIONS,
            RETURNS,
            *COMPILED,
        ),
    ),
    Effect(
        "wait",
        "makes a stream wait for an event or a stream; the host does not wait",
        (
            key("stream", "word or place", "The stream that waits.", STREAMS),
            key("on", "place", "The event or stream that it waits for.", needed=True),
            *COMPILED,
        ),
    ),
    Effect(
        "synchronize",
        "makes the host wait",
        (
            key("of", "word or place", "The stream or event that the host waits for, or `device` for all streams.", "device current null"),
            *COMPILED,
            key("ranks", "bool", "The processes of a group wait for one another."),
            NAMES_DEVICE,
        ),
    ),
    Effect(
        "query",
        "asks without waiting whether a stream or event is done; a loop until it is true is a wait",
        (key("of", "place", "The stream or event; the receiver if left out."),),
    ),
    Effect(
        "capture",
        "begins or ends the capture of a stream into a graph",
        (
            key(
                "part",
                "word",
                "What happens: `scope` returns a context manager; `relax` allows the thread unsafe calls from now on; `asked` returns, or"
                " stores in `into`, whether the stream is being captured.",
                "begin end scope relax asked",
                needed=True,
            ),
            key("stream", "word or place", "The stream that is captured; the current one if left out.", STREAMS),
            key("graph", "place", "The graph that is made."),
            key("owns", "bool", "Memory that is allocated in the capture belongs to the graph and lives as long."),
            key("mode", "place", "The capture mode, with `=global`, `=thread_local` or `=relaxed` for a call without it."),
            key("into", "place", "Where the answer of `asked` is stored (`&1`)."),
        ),
    ),
    Effect(
        "collective",
        "starts a collective of several processes, which writes behind the current stream, or waits for one",
        (
            key("part", "word", "`wait`: the stream waits for the handle, with `timeout` the host.", "issue wait"),
            key("writes", "places", "The buffers that are written."),
            key("batch", "place", "A list of objects that hold a function of the library and its arguments; the call starts them all."),
            key("asynchronous", "switch", "The call returns a handle and does not wait."),
            key("timeout", "place", "The argument with which the host waits."),
            key("result", "word", "The handle, or a sequence of handles.", "handle sequence"),
            COMMUNICATOR,
        ),
    ),
    Effect(
        "communicator",
        "makes a communicator: several processes have collectives of their own",
        (
            RETURNS,
            INTO,
            key("backend", "place", "The name of the backend that runs the collectives."),
            key("on_devices", "texts", "The backends whose collectives are work on devices."),
            key("named", "place", "The name of one of several that exist already: the same name is the same one."),
            key("awaits", "text", "Whom the host waits for in the call (other processes)."),
        ),
    ),
    Effect(
        "symmetric",
        "makes memory that the ranks of a group share, leads to a peer's, or orders the ranks",
        (
            key(
                "part",
                "word",
                "What happens: `memory` makes a rank's own, `rendezvous` gives the handle, `peer` the memory of a rank; `barrier`"
                " and `wait` wait for other ranks on the current stream, `signal` lets one go on.",
                "memory rendezvous peer barrier wait signal",
                needed=True,
            ),
            RETURNS,
            key("of", "place", "The memory that the handle is of; where it is left out, nobody but the handle leads to it."),
            key("rank", "place", "The rank whose memory is meant."),
            key("offset", "place", "Where the memory begins that is meant."),
        ),
    ),
    Effect("destroy", "destroys a stream, event, handle or graph", (key("of", "place", "The object; the receiver if left out."),)),
)

"""Effects on data: buffers, copies and allocation."""

from __future__ import annotations

from streamlint.models.effects.shared import BYTES, GRADIENTS, INSTEAD, LATER, ON, RETURNS, SCALARS, STREAMS, WAITS
from streamlint.models.keys import Effect, key

DATA = (
    Effect(
        "factory",
        "makes a buffer with the library's caching allocator",
        (
            key(
                "space",
                "word",
                "Where the buffer is; `like`: where the argument of key `like` is; `argument`: where the argument of key `device` says.",
                "host device managed like argument",
            ),
            key("like", "place", "The buffer whose place the new one takes."),
            key("device", "place", "The device that is asked for; a call without it makes a host buffer in PyTorch."),
            key("pin", "switch", "The host buffer is pinned; a flag that is not known counts as pinned."),
            key("memory", "word", "The memory of a host buffer.", "pageable pinned managed unknown"),
            key("shape", "places", "The sizes, from which small buffers are known."),
            key("data", "place", "Host data that is copied in; on a device a blocking upload."),
            key("out", "places", "The buffer that is filled instead, where one is given."),
            key("alias", "bool", "The result shares its memory with `data` (`torch.from_numpy`)."),
            key("dtype", "place", "The data type that is asked for."),
            SCALARS,
            INSTEAD,
            key("counts", "bool", "The buffer holds consecutive whole numbers (`arange`): indices and no data."),
            key("random", "bool", "The host's generator draws the numbers of a host buffer (`randn`); another device draws others."),
            key("raw", "bool", "There is no pool: each call allocates with the driver, and each last release frees (numba)."),
            RETURNS,
            key("result", "word", "Where the buffer is in the result: alone, or first or second in a tuple.", "buffer first second"),
        ),
    ),
    Effect(
        "load",
        "reads values of unknown structure from a file, onto a device if one is named",
        (key("device", "place", "The device that the values go to."),),
    ),
    Effect(
        "view",
        "returns a view of the same memory",
        (
            key("of", "place", "The buffer that is viewed; the receiver if left out."),
            LATER,
            key(
                "part",
                "word",
                "The part that is viewed: `strided` is transposed and keeps pinning; `some` is a part that may have gaps; `repeated` has"
                " gaps unless `sizes` repeat nothing; `elements` is a sequence of parts; `contiguous` is the buffer itself, or a new"
                " pageable copy of one with gaps; `members`, `named` and `mapping` are the tensors of a module: alone, with their names,"
                " or by their names.",
                "whole strided some repeated elements contiguous members named mapping",
            ),
            key("axis", "place", "The axis of the part: a part along the first one has no gaps, unless `step` passes over some."),
            key("step", "place", "The distance between the elements of the part."),
            key("sizes", "place", "The sizes that the buffer is expanded to."),
            key("type", "type", "The type of the view, where it is not that of the buffer (`numpy.ndarray` for `Tensor.numpy()`)."),
            key("shares", "word", "The protocol by which another library takes the memory over.", "dlpack interface"),
            key("host_access", "bool", "The host is about to read the memory (`numpy.asarray(tensor)`)."),
            key("fetches", "switch", "Memory of a device is copied to the host first; without it such memory is refused."),
            key("host_memory", "word", "The memory of the host that it is copied to.", "pageable"),
            key("replaces", "bool", "An assignment to the attribute gives the buffer other memory and lets go of the old (`Tensor.data`)."),
        ),
    ),
    Effect(
        "compute",
        "works on its buffers where they are: queues work on the current stream for device buffers, reads host buffers on the host",
        (
            key("reads", "places", "The buffers that are read; the receiver and all arguments if left out."),
            key("made", "bool", "The work also reads the buffers that its object was made with."),
            key("writes", "places", "The buffers that are written in place."),
            key("out", "places", "Buffers that are written and returned where they are given."),
            ON,
            key("host", "bool", "The work is always done on the host (NumPy's functions)."),
            key("result", "word", "The kind of the result.", "buffer sequence scalar none self"),
            key("several", "place", "Where this argument is left out, or is a tensor, the result is no tuple but a tensor (`Tensor.max`)."),
            *WAITS,
            key(
                "checks_as_made",
                "bool",
                "The host asks for the truth of a check of the arguments where the object was made to check (`log_prob`).",
            ),
            INSTEAD,
            SCALARS,
            key("compares", "bool", "The call asks for the truth of a comparison of its arguments, wherever they are (`max`)."),
            key("counts", "bool", "The result holds indices or counts, whatever the work reads (`argsort`, `bincount`)."),
            key("random", "bool", "The numbers are drawn by the generator of the device where the work is done (`uniform_`, `bernoulli`)."),
            key("cast", "bool", "The result is the buffer itself where it has the type already."),
            key("named", "bool", "Arguments go by name: a call with other keywords is one of another type's method."),
            GRADIENTS,
            RETURNS,
        ),
    ),
    Effect(
        "read",
        "reads a buffer on the host; for a device buffer the host first waits for the stream (`Tensor.item`)",
        (
            key("of", "places", "The buffers that are read; the receiver if left out."),
            key(
                "shows", "bool", "It takes anything, and shows or keeps it as text or numbers: a dictionary of tensors as well as a number."
            ),
            key("state", "bool", "What is read is a number of the object itself, which it keeps on the device (`GradScaler.get_scale`)."),
            key("stream", "word or place", "The stream that the host waits for.", STREAMS),
            key("result", "word", "The kind of the result.", "scalar sequence none"),
            key("host_memory", "word", "The memory that a device value is copied to.", "pinned pageable"),
            key("keeps_gil", "bool", "The library waits without releasing Python's GIL."),
        ),
    ),
    Effect(
        "write",
        "writes a buffer on the host (`numpy.copyto`, `memcpy`)",
        (
            key("of", "place", "The buffer that is written."),
            key("reads", "places", "The buffers that are read."),
            key("count", "place", "The number of elements that the buffer has from now on (`resize`)."),
        ),
    ),
    Effect(
        "transfer",
        "moves a value to another memory and returns it there; copies nothing if the value is there already (`Tensor.to`)",
        (
            key("of", "place", "The value that is moved; the receiver if left out."),
            key(
                "to",
                "word or place",
                "Where the value goes; `argument`: the arguments of key `device` decide (the overloads of `Tensor.to`).",
                "device host argument",
            ),
            key("device", "places", "The arguments that may name the device."),
            key("dtype", "places", "The arguments that may name a data type."),
            key("asynchronous", "switch", "The host does not wait for the copy."),
            ON,
            key("out", "place", "The destination, where the caller gives one."),
            key("host_memory", "word", "The memory of a new destination on the host.", "pinned pageable pinned-if-asynchronous"),
            key("staged", "bool", "Pageable sources go through pinned memory of the library's own (`cupy.asarray`)."),
            key("raw", "bool", "A new destination on the device is allocated with the driver, without a pool (numba)."),
            key("leaves", "bool", "Each tensor of a container is moved (`accelerate.utils.send_to_device`)."),
            RETURNS,
        ),
    ),
    Effect(
        "copy",
        "copies between two buffers or pointers",
        (
            key("dst", "place", "The destination."),
            key("src", "place", "The source."),
            BYTES,
            key("direction", "word or place", "The direction; `infer`: the memory of both sides decides.", "h2d d2h d2d h2h peer infer"),
            key("across", "bool", "Memory is copied so between the host and a device alone (Thrust)."),
            key("leaves", "bool", "Both sides hold many tensors, each of which is copied (`torch._foreach_copy_`)."),
            key("to_device", "place", "The device of the destination."),
            key("from_device", "place", "The device of the source."),
            key(
                "asynchronous",
                "switch",
                "The copy is asked to be asynchronous; if not, the host waits as CUDA documents for the direction.",
            ),
            key("result", "word", "The call gives its destination back.", "self"),
            key("each", "bool", "Both are lists: each element of one is copied to that of the other."),
            key("policy", "bool", "What is not across is an algorithm, whose policy may stand before its arguments (`thrust::copy`)."),
            key("waits", "bool", "The host waits for that algorithm."),
            ON,
        ),
    ),
    Effect(
        "memset",
        "fills device memory",
        (
            key("dst", "place", "The memory that is filled."),
            BYTES,
            key("asynchronous", "switch", "The host does not wait for the work."),
            ON,
        ),
    ),
    Effect(
        "pin",
        "returns a pinned copy of a host buffer, or the buffer itself if it is pinned (`Tensor.pin_memory`)",
        (key("of", "place", "The buffer that is copied; the receiver if left out."), RETURNS),
    ),
    Effect(
        "register",
        "page-locks memory in place (`cudaHostRegister`)",
        (key("of", "place", "The memory that is page-locked.", needed=True), BYTES),
    ),
    Effect("unregister", "ends the page-locking of memory", (key("of", "place", "The memory.", needed=True),)),
    Effect(
        "alloc",
        "allocates with the driver (device, pinned, managed), or plain host memory (pageable)",
        (
            key("memory", "word", "The memory that is allocated.", "device pinned managed pageable"),
            key("into", "place", "Where the pointer is stored: the result, or an out-parameter (`&0`)."),
            BYTES,
            key("stream", "word or place", "The stream in whose order the memory is allocated (`cudaMallocAsync`).", STREAMS),
            key("pool", "place", "The argument that is only there where the call names a pool of its own (`cudaMallocFromPoolAsync`)."),
            key("owned", "bool", "The result is an object that frees the memory with its last reference."),
        ),
    ),
    Effect(
        "free",
        "frees memory that `alloc` has allocated",
        (
            key("of", "place", "The memory that is freed."),
            key("memory", "word", "The memory that is freed.", "device pinned managed pageable"),
            key("stream", "word or place", "The stream in whose order the memory is freed (`cudaFreeAsync`).", STREAMS),
        ),
    ),
    Effect("trim", "gives cached memory back to the driver (`torch.cuda.empty_cache`)"),
)

"""Effects that make objects or change settings."""

from __future__ import annotations

from streamlint.models.effects.shared import (
    CHOOSES,
    COMPILED,
    COMPILING,
    DEVICES,
    INSTEAD,
    INTO,
    LATER,
    NAMES_DEVICE,
    RENEWS,
    RETURNS,
    STREAMS,
    WAITS,
)
from streamlint.models.keys import Effect, key

OBJECTS = (
    Effect("counter", "counts the steps or epochs of a framework's loop"),
    Effect(
        "object",
        "makes an object of `type` that remembers its arguments",
        (
            RETURNS,
            INTO,
            key("device", "place", "The device that the parameters of a module are made on, or that the object is for."),
            key("space", "word", "Where the object works if no device is given.", "host device"),
            key("holds", "word", "The object is given modules, and calls one after the other, or lists them.", "chain list"),
            key("checks", "switch", "The host asks for the truth of a check of the arguments, unless this one is given and may be false."),
            key("enabled", "switch", "The object does nothing if this argument is given and false (`GradScaler`)."),
            key("timing", "switch", "Events that are made with these options measure time."),
            key("uploads", "bool", "A number beside a tensor of the device is uploaded (`Normal(mean, 1.0)`)."),
            key("what", "word", "The setting that changes when the object is made (`cupy.cuda.MemoryAsyncPool`).", "pool"),
            *WAITS[:4],
            INSTEAD,
            key("text", "place", "The source that the object compiles; the text of its receiver if left out."),
            key("kernel", "place", "The name of the kernel in that source."),
            key("inputs", "place", "The text that declares the inputs of a kernel: arguments behind them are its outputs."),
        ),
    ),
    Effect(
        "bind_stream",
        "makes a library handle work on a stream from now on (`cublasSetStream`)",
        (
            key("handle", "place", "The handle; left out where the library has one stream for all its calls (`nppSetStream`)."),
            key("stream", "word or place", "The stream.", STREAMS),
        ),
    ),
    Effect(
        "loader",
        "makes a loader of batches",
        (
            key("pin", "switch", "The tensors of its batches are pinned."),
            key("dataset", "place", "The dataset."),
            key("collate", "place", "The function that makes a batch of samples."),
            key("workers", "place", "The number of worker processes."),
            key("worker_init", "place", "The function that each worker process runs first."),
            key("context", "place", "The start method, or a context of `multiprocessing`."),
            key("space", "word", "The batches are on the device.", "device"),
        ),
    ),
    Effect(
        "prepare",
        "returns its arguments ready for a framework's device: loaders give batches there, modules work there",
        (
            key("parts", "places", "The arguments that the parts of the result stand for, in this order; left out, those by position."),
            key("type", "type", "The type of the object that is put around the first of these and has members of its own, beside its."),
        ),
    ),
    Effect(
        "namespace",
        "returns a module of a library under another name (`torch.get_device_module()`)",
        (
            key("name", "module", "The module.", needed=True),
            key("of", "place", "The type of the elements (`ctypes.c_float * 8`)."),
        ),
    ),
    Effect("split", "returns parts of a dataset (`random_split`)"),
    Effect(
        "module_to",
        "moves the parameters of a module and returns the module",
        (
            key("of", "place", "The module; the receiver if left out."),
            key("to", "word", "Where the parameters go; `argument`: the arguments of key `device` decide.", "device host argument"),
            key("device", "places", "The arguments that may name the device."),
            key("asynchronous", "switch", "The host does not wait for the copies."),
            *RENEWS,
        ),
    ),
    Effect(
        "device", "returns a device (`torch.device`)", (key("from", "place", "The name or number of the device."), CHOOSES, NAMES_DEVICE)
    ),
    Effect(
        "facade",
        "returns an object whose members are those of a module of the library",
        (key("module", "module", "The module.", needed=True),),
    ),
    Effect("placed", "asks whether a buffer is on a device", (key("of", "place", "The buffer; the receiver if left out."),)),
    Effect(
        "pinned_options", "returns tensor options that ask for pinned memory (C++)", (key("pin", "switch", "Pinned memory is asked for."),)
    ),
    Effect(
        "same",
        "returns one of its arguments, or stores it (`torch.nn.Parameter`, casts, `std::move`)",
        (
            key("of", "place", "The argument.", needed=True),
            key("into", "place", "Where it is stored (`&0`)."),
            key("moves", "bool", "A value made by a constructor goes wherever its owner goes."),
            key("captures", "place", "The callables whose work is captured, once for each of them."),
            key("new_shape", "places", "The dimensions that the buffer is to have: it takes other memory where it had fewer elements."),
            *COMPILING[:3],
        ),
    ),
    Effect("collect", "runs the garbage collector: objects without a reference are released"),
    Effect(
        "move",
        "returns its argument and leaves a smart pointer empty (`std::move`)",
        (key("of", "place", "The argument.", needed=True),),
    ),
    Effect(
        "swap",
        "exchanges the values of two variables (`std::swap`)",
        (key("first", "place", "One of them.", needed=True), key("second", "place", "The other one.", needed=True)),
    ),
    Effect(
        "none",
        "has no effect on memory, streams or order; the result is a plain value",
        (
            key("result", "word", "The kind of the result.", "scalar none sequence"),
            DEVICES,
            LATER,
            key("rank", "bool", "The result is the number of the process among others: each has another one."),
            key("sleeps", "bool", "Time passes; a thread that asks again and again does so in between."),
            key("asks_for_cuda", "bool", "The result says whether there is a CUDA device; false: whether there is none."),
            key("asks_for_tensor", "bool", "The result says whether the argument is a tensor of PyTorch."),
            key("decorates", "bool", "A function that the result is put around as a decorator stays as it is (`torch.no_grad()`)."),
            key("without_gradients", "bool", "A function that the call decorates, or a scope of it, keeps no gradients."),
            key("with_gradients", "bool", "The same may keep gradients where none were kept before."),
            key("groups", "bool", "The call begins or ends a group of calls that are started together (`ncclGroupStart`)."),
            CHOOSES,
            key("on_device", "place", "The buffer that the call shows to be on a device."),
            key("shows", "word", "Where the memory is if the result is true; elsewhere if it is false.", "host device"),
            key("asserts", "bool", "The program goes on only where the first argument is true (`TORCH_CHECK`)."),
            *(COMPILING[number] for number in (0, 1, 3)),
            *RENEWS,
        ),
    ),
    Effect(
        "record_use",
        "makes the allocator wait for a stream before it reuses the memory of a buffer (`Tensor.record_stream`)",
        (key("of", "place", "The buffer.", needed=True), key("stream", "word or place", "The stream.", STREAMS), *COMPILED),
    ),
    Effect(
        "release",
        "gives the memory of a buffer back while the object stays (`UntypedStorage.resize_(0)`, `Tensor.set_`)",
        (
            key("of", "place", "The buffer.", needed=True),
            key("size", "place", "The new size: memory is given back where it is zero. Left out, other memory takes the place of the old."),
        ),
    ),
    Effect(
        "setting",
        "changes how later calls behave",
        (
            key("what", "word", "The setting.", "allocator start-method ptds no-cache peer-access device pool", needed=True),
            key("value", "place", "The value that is set."),
            key("attribute", "place", "What is set: nothing that counts here where it is a constant of the word `other`."),
        ),
    ),
)

"""The keys of model rows: the name of each key, the rows that take it, the values that it accepts, and its meaning in one sentence.

Validation, the reference page of the documentation, the JSON Schema of the configuration and ``streamlint models NAME`` read this table,
and ``effects.py``, which holds the keys of calls and attributes by their effect.
"""

from __future__ import annotations

from streamlint.models.traits import TRAITS
from streamlint.support.records import record

# The kinds of value, and how an error and the reference page describe them.
KINDS = {
    "bool": "true or false",
    "place": "a place in the call: self, result, * (all arguments), &0, 2, 2:keyword or :keyword, with =default if wanted",
    "places": "one place in the call (self, result, *, &0, 2, 2:keyword, :keyword, with =default if wanted) or a list of them",
    "switch": (
        "true, false, the place of a flag in the call (2:keyword=false, :keyword), ! before a place for the opposite of the flag, "
        "or a list of places"
    ),
    "cases": "a place in the call with the value that counts behind = (2:strict=true, 1:ord=nuc, 1:n=-1), or a list of them",
    "word": "one word",
    "words": "one word, or a list of them",
    "word or place": "one word, or a place in the call (self, result, *, &0, 2, 2:keyword, :keyword, with =default if wanted)",
    "text": "a text",
    "texts": "a text or a list of texts",
    "number": "a whole number of up to four digits",
    "version": "1",
    "names": "a name or a list of names; * in a name matches any run of characters",
    "type": "the name of a type that has a row, shipped or of your own",
    "module": "the dotted name of a module or type that has rows",
    "library": "the name of a library",
}


@record(frozen=True, slots=True)
class Key:
    """A key of a row."""

    name: str
    kind: str  # of `KINDS`
    meaning: str
    words: tuple[str, ...] = ()  # that it accepts, where they are few
    needed: bool = False

    @property
    def accepts(self) -> str:
        """The values that the key accepts, in words."""
        words = ", ".join(self.words)
        if self.kind == "word":
            return f"one of {words}" if len(self.words) > 1 else words
        if self.kind == "words":
            return f"{words}; or a list of them"
        return f"one of {words}; or a place in the call" if self.kind == "word or place" else KINDS[self.kind]


@record(frozen=True, slots=True)
class Effect:
    """The effect of a call, or of reading an attribute, with the keys of its rows."""

    name: str
    meaning: str
    keys: tuple[Key, ...] = ()

    def key(self, name: str) -> Key | None:
        """The key of this name."""
        return next((key for key in self.keys if key.name == name), None)


def key(name: str, kind: str, meaning: str, words: str = "", needed: bool = False) -> Key:
    """A key whose words are written with spaces between them."""
    return Key(name, kind, meaning, tuple(words.split()), needed)


LANGUAGES = ("python", "cuda", "cython")
STEP_LOOPS = ("training", "denoising", "decoding", "serving", "optimizer")
TYPE_KINDS = "buffer pointer stream event handle module loader device graph object scope communicator"

# --- The head of a table ------------------------------------------------------------------------------------------------------
HEAD = (
    key("library", "library", "The library whose current stream and allocator the calls use."),
    key(
        "language",
        "word",
        "The language of the code that makes the calls; rows without it hold for all languages.",
        " ".join(LANGUAGES),
    ),
    key("version", "version", "The version of this vocabulary."),
    key("fallback", "bool", "Names in the rows of calls count only where no other row has them; they still come before patterns."),
    key(
        "triggers",
        "texts",
        "Texts that make a file worth reading; the last parts of the names of `call` rows are triggers without being listed here.",
    ),
    key("seams", "texts", "Texts of files that may call the functions from Python; they count only where another file mentions CUDA."),
)

# --- The keys of rows ---------------------------------------------------------------------------------------------------------
_NAMES = "names"
CALL = (
    key(
        _NAMES,
        "names",
        "The functions and methods, by the names that users write: `package.function`, `Type.method`, in C++ `space::Type::method`.",
        needed=True,
    ),
    key("effect", "word", "The effect of the call; it decides which of the keys below the row takes.", needed=True),
)
ATTRIBUTE = (
    key(_NAMES, "names", "The attributes, as `Type.attribute` or `module.attribute`.", needed=True),
    key("effect", "word", "The effect of reading the attribute; it decides which of the keys below the row takes.", needed=True),
)
TYPE = (
    key(_NAMES, "names", "The types, by the names that users write.", needed=True),
    key("kind", "word", "The kind of the values: it decides what the analysis makes of them.", TYPE_KINDS, needed=True),
    key("base", "type", "The type whose methods and attributes the values have besides their own."),
    key("space", "word", "Where the memory of a buffer is.", "host device managed unknown"),
    key("memory", "word", "The memory of a buffer on the host.", "pageable pinned managed unknown"),
    key("raw", "bool", "Values allocate with `cudaMalloc` and free with `cudaFree`, without a pool (C++ containers)."),
    key("holds_stream", "bool", "A function that is given such a handle is given the stream to work on (RAFT's resources)."),
    key(
        "computes",
        "bool",
        "Methods of the type put work on the device; an unknown value may have them, by their names, where a file uses the library.",
    ),
    key("fields", "texts", "The fields of a struct that is made from a list of values, or the parts of a tuple, in their order."),
)
CONSTANT = (
    key(_NAMES, "names", "The names of the constant.", needed=True),
    key(
        "value",
        "word",
        "The meaning of the constant.",
        "h2d d2h d2d h2h infer success non-blocking blocking null-stream ptds-stream per-thread policy host-policy captured not-captured"
        " cuda-device cpu-device untimed absent other",
        needed=True,
    ),
)
STEP = (
    key(_NAMES, "names", "The base classes of a framework whose methods are called once in each training step.", needed=True),
    key("methods", "texts", "The methods that the framework calls in each step.", needed=True),
    key("unproven", "texts", "The ends of the names of base classes that count although their source is not part of the run."),
    key("on_device", "places", "The parameters of the methods that are on the device."),
    key("counts", "places", "The parameters of the methods that count the framework's rounds."),
    key("forward", "bool", "The methods compute for their caller, also where nothing is trained."),
    key("gives_loss", "bool", "The methods return the loss: alone, first in a tuple, or under the key `loss`."),
    key(
        "members",
        "texts",
        "Members of the receiver by which a method counts although a base of its class is unknown: it uses all.",
    ),
    key("of", "place", "The methods are those of what this argument of the class's constructor is given: a trainer's module."),
    key("started", "texts", "With `of`: the calls of an object of the class by which the framework's loop begins."),
    key("loop", "word", "The loop of the framework that calls the methods; training if left out.", " ".join(STEP_LOOPS)),
    key("source", "text", "Where the framework's source or documentation says so."),
)
ROUND = (
    key(_NAMES, "names", "The functions and methods, by the names that users write.", needed=True),
    key(
        "does",
        "word",
        "What the call does of a round.",
        "backward derive scale optimizer accumulate decode denoise serve handler caller",
        needed=True,
    ),
    key(
        "beside",
        "texts",
        "Members that show a value of unknown class to be of the type: one is used of the same value; without the key the name is enough.",
    ),
    key(
        "function",
        "place",
        "Of a `handler`, or of a `caller`, whose rounds do not train: the function that is called in each round; `result`: what the result "
        "is called with. Of an `optimizer`: the function that its step takes, and nothing else.",
    ),
    key("event", "place", "Of a `handler`: the argument that says when the function is called."),
    key("events", "texts", "Names of the events that happen in each round."),
    key("source", "text", "Where the library's source or documentation says so."),
)

TRAIT = (
    key(
        _NAMES,
        "names",
        "The functions, methods, attributes, types or packages. `*.name` is a member of whatever type.",
        needed=True,
    ),
    key("traits", "words", "What the rules may take for granted of them.", " ".join(TRAITS), needed=True),
)

# What the words of `constant` rows say.
VALUES = {
    "h2d": "copy from the host to the device",
    "d2h": "copy from the device to the host",
    "d2d": "copy within the device",
    "h2h": "copy within the host",
    "infer": "copy whose direction the pointers decide",
    "success": "status of a call that succeeded",
    "non-blocking": "flag of a non-blocking stream",
    "blocking": "flag of a blocking stream",
    "null-stream": "the legacy default stream",
    "ptds-stream": "the per-thread default stream",
    "per-thread": "the per-thread default stream, as a flag",
    "policy": "Thrust policy that runs on the device",
    "host-policy": "Thrust policy that runs on the host",
    "untimed": "flag of an event that measures no time",
    "captured": "state of a stream that is being captured",
    "not-captured": "state of a stream that is not being captured",
    "cuda-device": "a CUDA device (`torch::kCUDA`)",
    "cpu-device": "the CPU (`torch::kCPU`)",
    "absent": "no value (`None`)",
    "other": "anything else",
}

# The kinds of rows, each with its meaning and the keys that all rows of the kind take.
ROWS: dict[str, tuple[str, tuple[Key, ...]]] = {
    "call": ("The effect of a function or method, and where in the call its buffers, streams and flags are.", CALL),
    "attribute": ("The effect of reading an attribute.", ATTRIBUTE),
    "type": ("The kind of a class's values, and the type whose methods they have.", TYPE),
    "constant": ("The meaning of a constant.", CONSTANT),
    "step": ("The methods that a framework calls in each training step.", STEP),
    "round": ("The calls by which a loop trains, decodes, denoises or serves in each round.", ROUND),
    "trait": ("What rules ask of functions, members, types and packages, besides the effect of a call.", TRAIT),
}

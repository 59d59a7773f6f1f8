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
DEVICES = key("devices", "bool", "The call counts devices, or makes one the current one: a loop around it goes over devices.")

"""Readers of recorded runs: PyTorch's profiler, Nsight Systems, and the project's own recordings, all into the one form of `trace.model`.

`opening` recognises a file by its content and hands it on: `kineto` reads the JSON of PyTorch's profiler (`json_stream` piece by
piece, `kineto_events` event by event), `nsight` an SQLite export, `recorded` what `trace.recording` wrote; `joining` is what the first two
do last. A profiler's functions become lines of the user's code in `lines`: `sources` finds the files, `sites` (with `syntax`) what a
function's source does and in which order, `nesting` which frames were open around a call, `signs` what an event says of its place,
`aligning` which line it came from.
"""

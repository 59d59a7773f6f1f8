"""What a recorded run says about the code: which places held the host, what that cost the GPU, and which findings it concerns.

In: a recording of a run (of `streamlint trace --run`, of PyTorch's profiler, of Nsight Systems) and the findings of `check`.
Out: costs of places, findings with their costs, stalls that no finding names.
`recording` writes runs, `readers` read them to the one form of `model`, `analysis` computes the costs of places, `join` puts
findings beside them, `shown` prints, `profile` reads what was printed as JSON. Imports findings, records, texts, and in `shown` the
formats of `report`; the engine is asked by `commands.trace` alone. `recording` runs inside of the user's program and imports nothing of
streamlint but `errors`, `records`, `trace.model` and `trace.kinds`.
"""

"""Program facts: modules, classes, the call graph and value flow over all files of a run.

Sources and their intermediate representation come in (`files.program.Program`); out go answers to questions (`graph.facts.Facts`): what
may a parameter, an attribute, a register hold, and through which call; whom does a call enter; who calls a function. Facts do not know in
which order a function's instructions run. The folder imports `ir`, `models` and `build_files` and nothing above them.

Folders, each of which may import those before it: ``code``, ``files``, ``values``, ``cpp``, ``graph``, ``repetition``.
"""

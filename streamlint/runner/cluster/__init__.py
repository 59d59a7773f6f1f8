"""A run whose rules are spread over a Dask cluster. Nothing here is imported without ``--executor dask``.

``client`` hands rules out, ``tasks`` is what a worker runs, ``analyst`` is the process that a worker keeps for it. All files travel with
the work as they were parsed, so a worker needs no file of the tree. What build files say is asked on the worker: an answer that rests on
another one than is given here is thrown away, and its rules are asked here.
"""

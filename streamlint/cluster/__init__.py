"""A run whose files are spread over a Dask cluster. Nothing here is imported without ``--executor dask``.

``client`` hands files out, ``tasks`` is what a worker runs, ``analyst`` is the process that a worker keeps for it. All texts travel with
the work, so a worker needs no file of the tree. What build files say is asked on the worker: an answer that rests on another one than is
given here is thrown away, and the file is analysed here.
"""

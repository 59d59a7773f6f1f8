"""Value flow of C++, and between C++ and Python.

In: the same questions, where C++ answers otherwise. Out: objects of C++, calls that enter it, and what crosses.
May import: ``code``, ``files``, ``values``.
"""

"""The files of a program together: what names mean, which class inherits from which, what C++ gives Python, where a value goes.

In: functions of all files. Out: the program, and walks over it that need no values.
May import: ``code``.
"""

"""One run: paths and settings in; files found and read, their programs parsed and searched in worker processes; findings in order out.

Stands on every folder but `commands`, `server`, `report` and `verify`, which start runs or show what they gave.
"""

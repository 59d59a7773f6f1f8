"""Python imports this when it starts as a child of a recorded program; the module of that name that it hides is run as well."""

import importlib.machinery
import importlib.util
import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))
_folders = [_one for _one in sys.path if os.path.abspath(_one or os.curdir) != _here]
_hidden = importlib.machinery.PathFinder.find_spec("sitecustomize", _folders)
if _hidden is not None and _hidden.loader is not None:
    _module = importlib.util.module_from_spec(_hidden)
    sys.modules["sitecustomize"] = _module
    _hidden.loader.exec_module(_module)
try:
    from streamlint.trace.recording import children
except ImportError:  # another interpreter than the one that streamlint is installed in
    pass
else:
    children.begin()

"""``python -m streamlint``."""

import os
import sys

# Python puts the current folder first on the path, and what is linted must not be what is run: no module of ours or of others is looked for
# there from here on. Those of this package are found by its own path.
if sys.path and not getattr(sys.flags, "safe_path", False) and os.path.realpath(sys.path[0] or ".") == os.path.realpath("."):
    del sys.path[0]

from streamlint.cli import main

raise SystemExit(main())

"""``python -m streamlint.record script.py`` runs a program recorded."""

import sys

from streamlint.trace.recording import program

sys.exit(program.main(sys.argv[1:]))

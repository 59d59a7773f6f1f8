"""The way to the helpers that these tests share (`fake_gpu`)."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

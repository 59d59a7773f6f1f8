"""The documents that facts are read from, CUDA 13.0."""

from __future__ import annotations

API_SYNC = "API synchronization behavior"
STREAM_SYNC = "Stream synchronization behavior"
GUIDE = "Programming Guide, Asynchronous Execution"
HEADER = "cuda_runtime_api.h"

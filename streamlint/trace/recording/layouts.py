"""CUPTI's activity records: where the fields stand that are kept.

Source: cupti_activity.h and cupti_activity_deprecated.h of CUPTI 12.9 and 13.5, compiled with offsetof. New versions of a record are
longer; the fields below kept their places from CUpti_ActivityKernel4 (CUDA 9) to Kernel13, Memcpy to Memcpy7, Memset2 to Memset5,
MemcpyPtoP to PtoP4, Synchronization to Synchronization2. So the length alone differs by version: the recorder measures it, and keeps
the beginning.
"""

from __future__ import annotations

import struct

MEMCPY, MEMSET, DRIVER, RUNTIME, KERNEL, PEER, STREAM, SYNCHRONIZATION = 1, 2, 4, 5, 10, 22, 37, 38
KINDS = (MEMCPY, MEMSET, KERNEL, PEER)  # enabled besides the calls: work. Those of synchronizations make each launch 2 µs longer
# What is kept of each record, from its beginning: all fields below lie within.
KEPT = {MEMCPY: 48, MEMSET: 48, DRIVER: 40, RUNTIME: 40, KERNEL: 112, PEER: 64, STREAM: 24, SYNCHRONIZATION: 40}

API = struct.Struct("<4xIQQIIII")  # cbid, start, end, process, thread, correlation, status
COPY = struct.Struct("<5xBBxQQQI4xII")  # source, destination, bytes, start, end, device, stream, correlation
PEER_COPY = struct.Struct("<5xBBxQQQI4xI16xI")  # the same of a copy between devices
FILL = struct.Struct("<8xQQQI4xII")  # bytes, start, end, device, stream, correlation
LAUNCHED = struct.Struct("<16xQQ8xI4xI40xI8xQ")  # start, end, device, stream, correlation, address of the name
NAME = struct.Struct("<104xQ")  # of a kernel: the address of its name
WAITED = struct.Struct("<8xQQI4xI")  # start, end, correlation, stream
MADE = struct.Struct("<8xI4xI")  # stream, flag

NO_STREAM = 0xFFFFFFFF  # CUPTI_SYNCHRONIZATION_INVALID_VALUE
NON_BLOCKING, NULL_STREAM = 2, 3  # CUpti_ActivityStreamFlag
MEMORY = {1: "pageable", 2: "pinned", 3: "device", 4: "array", 5: "managed", 6: "device", 7: "managed"}  # CUpti_ActivityMemoryKind

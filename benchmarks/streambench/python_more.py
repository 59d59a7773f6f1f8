"""The further ways of Python programs, all in one table."""

from __future__ import annotations

from benchmarks.streambench import (
    python_calls,
    python_classes,
    python_containers,
    python_files,
    python_objects,
    python_results,
    python_tasks,
)
from benchmarks.streambench.pieces import Way

WAYS: dict[str, Way] = {
    **python_objects.WAYS,
    **python_classes.WAYS,
    **python_containers.WAYS,
    **python_calls.WAYS,
    **python_tasks.WAYS,
    **python_results.WAYS,
    **python_files.WAYS,
}

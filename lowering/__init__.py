"""From graphs to executables: passes, resolution, fusion, memory plan."""

from __future__ import annotations

from .lowered import Backend, Executable, Interpreted, Lowered, Output, lower, register_backend
from .resolve import Target

__all__ = ["Backend", "Executable", "Interpreted", "Lowered", "Output", "Target", "lower", "register_backend"]

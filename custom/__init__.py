"""Operators from outside: an operator in one definition, kernels in any language, and a check of what was promised."""

from __future__ import annotations

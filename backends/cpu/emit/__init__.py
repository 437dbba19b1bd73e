"""Scalar expressions and loops as LLVM IR text, on explicit vectors."""

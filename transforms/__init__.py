"""Transforms: functions that make functions. Each module holds those of a kind."""

"""Tracing: functions to graphs. Importing the package puts the Tracer key's kernel into the registry."""

from . import record as record

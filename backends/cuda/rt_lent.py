"""Native code around what tells tandem that lent memory is needed no more.

Consumers let a capsule go, or a tensor, where an exception may be set already, and without the GIL. Python code can run
neither way: the GIL is taken, and the exception put aside meanwhile.
"""

from __future__ import annotations

from ..cpu.native.dsl import extern, i32, load_ptr, native, ptr, stack

PyGILState_Ensure = extern("PyGILState_Ensure", "i32()")
PyGILState_Release = extern("PyGILState_Release", "None(i32)")
PyErr_Fetch = extern("PyErr_Fetch", "None(ptr, ptr, ptr)")
PyErr_Restore = extern("PyErr_Restore", "None(ptr, ptr, ptr)")
tandem_capsule_gone = extern("tandem_capsule_gone", "None(ptr)")
tandem_plain_done = extern("tandem_plain_done", "None(ptr)")
tandem_versioned_done = extern("tandem_versioned_done", "None(ptr)")


@native
def enter(saved: ptr) -> i32:
    """Take the GIL, and put an exception aside, three pointers at ``saved``; gives what ``leave`` wants."""
    state = i32(PyGILState_Ensure())
    PyErr_Fetch(saved, saved + 8, saved + 16)
    return state


@native
def leave(state: i32, saved: ptr) -> None:
    """Set the exception again, and give the GIL back."""
    PyErr_Restore(load_ptr(saved, 0), load_ptr(saved, 8), load_ptr(saved, 16))
    PyGILState_Release(state)


@native
def capsule_gone(capsule: ptr) -> None:
    """The destructor of a capsule."""
    saved = stack(24)
    state = enter(saved)
    tandem_capsule_gone(capsule)
    leave(state, saved)


@native
def plain_done(managed: ptr) -> None:
    """The deleter of a DLManagedTensor."""
    saved = stack(24)
    state = enter(saved)
    tandem_plain_done(managed)
    leave(state, saved)


@native
def versioned_done(managed: ptr) -> None:
    """The deleter of a DLManagedTensorVersioned."""
    saved = stack(24)
    state = enter(saved)
    tandem_versioned_done(managed)
    leave(state, saved)

"""Control flow: loops and branches as operators that hold their bodies as graphs."""

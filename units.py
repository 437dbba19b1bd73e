"""Formatting of times and sizes for people."""


def format_duration(ns: float) -> str:
    """A time in three digits and its unit."""
    for unit, scale in (("ns", 1.0), ("us", 1e3), ("ms", 1e6)):
        if ns < 999.5 * scale:
            return f"{ns / scale:.3g} {unit}"
    return f"{ns / 1e9:.3g} s"


def format_size(count: int) -> str:
    """A number of bytes in three digits and its unit."""
    amount = float(count)
    for unit in ("B", "KiB", "MiB"):
        if abs(amount) < 1000:
            return f"{amount:.3g} {unit}"
        amount /= 1024
    return f"{amount:.3g} GiB"

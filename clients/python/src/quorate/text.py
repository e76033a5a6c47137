"""Keys and values as callers give them."""

from __future__ import annotations

#: Text is sent as UTF-8.
Text = bytes | str


def as_bytes(text: Text) -> bytes:
    """The bytes of a key or a value."""
    if isinstance(text, str):
        return text.encode()
    # bytes(5) would be five zero bytes.
    if isinstance(text, (bytes, bytearray, memoryview)):
        return bytes(text)
    raise TypeError(f"keys and values are str or bytes, not {type(text).__name__}")

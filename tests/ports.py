"""Ports for tests and benchmarks. Requires only Python."""

import socket
from collections import deque

_held_ports: deque[socket.socket] = deque(maxlen=64)


def free_port() -> int:
    """A port of 127.0.0.1 that no other process is given before the program under test listens on it.

    A bound socket holds it. Its option SO_REUSEADDR lets a listener with the same option share the port."""
    holder = socket.socket()
    holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    holder.bind(("127.0.0.1", 0))
    _held_ports.append(holder)
    return holder.getsockname()[1]

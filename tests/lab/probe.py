"""A job of two tasks on two nodes that reports its network and its peers: `srun python probe.py FOLDER`.

Task 0 answers. Task 1 asks it again and again and appends to FOLDER/network one JSON line each time: "tcp", the seconds
that 100 kB took (null: not in a second), and "udp", how many of 50 packets came back. Both write their heartbeat to
FOLDER/beat-<task>."""

import json
import os
import socket
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

FOLDER = Path(sys.argv[1])
TASK = int(os.environ["SLURM_PROCID"])
PACKETS = 50


def beat() -> None:
    while True:
        (FOLDER / f"beat-{TASK}").write_text(str(time.time()))
        time.sleep(0.1)


def answer() -> None:
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(("", 0))
    tcp = socket.create_server(("", 0))

    def echo() -> None:
        while True:
            with suppress(OSError):
                data, sender = udp.recvfrom(64)
                udp.sendto(data, sender)

    threading.Thread(target=echo, daemon=True).start()
    address = {"host": socket.gethostname(), "tcp": tcp.getsockname()[1], "udp": udp.getsockname()[1]}
    (FOLDER / "address.tmp").write_text(json.dumps(address))
    (FOLDER / "address.tmp").rename(FOLDER / "address")
    while True:
        with suppress(OSError):
            connection, _ = tcp.accept()
            connection.settimeout(5)
            with connection:
                while connection.recv(65536):
                    pass
                connection.sendall(b"k")


def ask_tcp(host: str, port: int) -> float | None:
    begin = time.monotonic()
    try:
        with socket.create_connection((host, port), timeout=1) as connection:
            connection.settimeout(4)
            connection.sendall(bytes(100_000))
            connection.shutdown(socket.SHUT_WR)
            return time.monotonic() - begin if connection.recv(1) == b"k" else None
    except OSError:
        return None


def ask_udp(host: str, port: int) -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        udp.settimeout(0.3)
        with suppress(OSError):
            for number in range(PACKETS):
                udp.sendto(bytes([number]), (host, port))
        seen = set()
        with suppress(OSError):
            while len(seen) < PACKETS:
                seen.add(udp.recv(64))
        return len(seen)


def ask() -> None:
    while not (FOLDER / "address").exists():
        time.sleep(0.05)
    address = json.loads((FOLDER / "address").read_text())
    with (FOLDER / "network").open("a", buffering=1) as lines:
        while True:
            report = {
                "tcp": ask_tcp(address["host"], address["tcp"]),
                "udp": ask_udp(address["host"], address["udp"]),
            }
            lines.write(json.dumps(report) + "\n")


threading.Thread(target=beat, daemon=True).start()
answer() if TASK == 0 else ask()

"""Cables between the nodes of a lab that carry some packets and not others."""

import subprocess
from collections.abc import Callable, Iterator

import pytest
from labs import Lab

PASS = "6 0 0 4294967295"
DROP = "6 0 0 2"


def node(lab: Lab, name: str) -> dict:
    return next(entry for entry in lab.description["nodes"] if entry["name"] == name)


def number(address: str) -> int:
    return int.from_bytes(bytes(map(int, address.split("."))), "big")


def tc(lab: Lab, name: str, *words: str) -> None:
    subprocess.run(["tc", "-netns", node(lab, name)["network_namespace"], *words], check=True, capture_output=True)


@pytest.fixture
def firewall(lab: Lab) -> Iterator[Callable[..., None]]:
    """firewall("n3", "n2") drops at n3 what comes from n2; with new_only only what begins a TCP connection."""
    guarded = []

    def drop(at: str, sender: str, new_only: bool = False) -> None:
        source = f"32 0 0 26,21 0 {6 if new_only else 1} {number(node(lab, sender)['address'])}"
        # A packet of TCP with SYN and without ACK.
        begins = "48 0 0 23,21 0 4 6,48 0 0 47,84 0 0 18,21 0 1 2"
        program = f"9,{source},{begins},{DROP},{PASS}" if new_only else f"4,{source},{DROP},{PASS}"
        guarded.append(at)
        tc(lab, at, "qdisc", "add", "dev", "eth0", "clsact")
        tc(lab, at, "filter", "add", "dev", "eth0", "ingress", "bpf", "direct-action", "bytecode", program)

    yield drop
    for name in guarded:
        tc(lab, name, "qdisc", "del", "dev", "eth0", "clsact")

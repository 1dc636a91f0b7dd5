"""Two hosts on one machine: network namespaces with a pair of virtual cards between them, and host names of their own.

It takes root and Linux. What runs on a host sees that host's addresses alone, so what two of them say to each other
goes over TCP.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Host:
    """One of the two.

    Arguments:
        name: the namespace's and the host's
        address: that of its card
        card: the card's name
    """

    name: str
    address: str
    card: str

    def command(self, *words: str) -> list[str]:
        """What runs a command on this host: its process is the command itself, which signals reach."""
        named = ["unshare", "--uts", "sh", "-c", 'hostname "$0" && exec "$@"', self.name]
        return ["ip", "netns", "exec", self.name, *named, *words]

    def listeners(self) -> list[str]:
        """The addresses on which somebody of this host listens, each with its port."""
        found = _run(*self.command("ss", "-H", "-ltn"))
        return [line.split()[3] for line in found.splitlines()]

    def sent(self) -> int:
        """How many bytes went out of its card so far."""
        return int(_run(*self.command("cat", f"/sys/class/net/{self.card}/statistics/tx_bytes")))


def _run(*words: str) -> str:
    done = subprocess.run(words, capture_output=True, text=True, timeout=30)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip() or done.returncode}")
    return done.stdout


def _wait_for_cards(hosts: tuple[Host, ...]) -> None:
    """The kernel takes up to a second to call a new card running, and libfabric takes no other."""
    end = time.monotonic() + 10
    links = [("ip", "-n", host.name, "-o", "link", "show", host.card) for host in hosts]
    while not all("state UP" in _run(*link) for link in links):
        if time.monotonic() > end:
            raise RuntimeError("the pair of cards does not run")
        time.sleep(0.05)


@contextmanager
def two_hosts() -> Iterator[tuple[Host, Host]]:
    """Two hosts, which are gone after it; RuntimeError says why they cannot be made."""
    if not all(map(shutil.which, ("ip", "ss", "unshare", "hostname"))):
        raise RuntimeError("ip, ss (iproute2), unshare and hostname make hosts, and are not all here")
    tag = f"tp{os.getpid() % 100000}"
    hosts = Host(tag + "a", "10.213.77.1", tag + "x"), Host(tag + "b", "10.213.77.2", tag + "y")
    try:
        for host in hosts:
            _run("ip", "netns", "add", host.name)
        cards = ("ip", "link", "add", hosts[0].card, "netns", hosts[0].name, "type", "veth")
        _run(*cards, "peer", "name", hosts[1].card, "netns", hosts[1].name)
        for host in hosts:
            _run("ip", "-n", host.name, "address", "add", host.address + "/24", "dev", host.card)
            _run("ip", "-n", host.name, "link", "set", host.card, "up")
            _run("ip", "-n", host.name, "link", "set", "lo", "up")
        for number, host in enumerate(hosts):  # a card that leads nowhere else, of which messages have to keep off
            _run("ip", "-n", host.name, "link", "add", "ahead", "type", "veth", "peer", "name", "behind")
            _run("ip", "-n", host.name, "address", "add", f"10.213.{78 + number}.1/24", "dev", "ahead")
            for card in ("ahead", "behind"):
                _run("ip", "-n", host.name, "link", "set", card, "up")
        _wait_for_cards(hosts)
        yield hosts
    finally:
        for host in hosts:
            if Path("/run/netns", host.name).exists():
                subprocess.run(["ip", "netns", "delete", host.name], capture_output=True)

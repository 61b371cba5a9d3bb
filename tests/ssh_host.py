"""A host behind a real sshd, with the login shells and start-up files that hosts have."""

import os
import shutil
import socket
import subprocess
import threading
from contextlib import suppress
from pathlib import Path

from ports import free_port
from running import wait_until

SSHD = shutil.which("sshd", path="/usr/sbin:/sbin:" + os.environ.get("PATH", ""))

# What the user's login shell does with ssh's command, chosen by the variable FAR of the ssh configuration.
LOGIN = """#!/bin/sh
cd {home} || exit 1
HOME={home}
PATH=/usr/bin:/bin
export HOME PATH
case $FAR in
stoker) PATH={bin}:$PATH; exec sh -c "$SSH_ORIGINAL_COMMAND" ;;
tools) PATH={tools}:$PATH; exec sh -c "$SSH_ORIGINAL_COMMAND" ;;
motd) echo "Welcome to the cluster"; echo "stoker-shell fake sha256sum"; echo "a warning" >&2; exec sh -c "$SSH_ORIGINAL_COMMAND" ;;
fish) exec fish --no-config -c "$SSH_ORIGINAL_COMMAND" ;;
zsh) exec zsh -c "$SSH_ORIGINAL_COMMAND" ;;
bash) exec bash --posix -c "$SSH_ORIGINAL_COMMAND" ;;
tcsh) exec tcsh -f -c "$SSH_ORIGINAL_COMMAND" ;;
nologin) echo "This account is currently not available."; exit 1 ;;
small) ulimit -f 4096; exec sh -c "$SSH_ORIGINAL_COMMAND" ;;
*) exec sh -c "$SSH_ORIGINAL_COMMAND" ;;
esac
"""


def answers(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0


class Relay:
    """A link to the sshd that can be cut, and that counts what goes to it."""

    def __init__(self, port: int):
        self.to = port
        self.sent = 0
        self.cut_after: int | None = None
        self.sockets: list[socket.socket] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self.listener.accept()
                far = socket.create_connection(("127.0.0.1", self.to))
                self.sockets += [near, far]
                for one, other, counts in ((near, far, True), (far, near, False)):
                    threading.Thread(target=self.pump, args=(one, other, counts), daemon=True).start()

    def pump(self, one: socket.socket, other: socket.socket, counts: bool) -> None:
        with suppress(OSError):
            while data := one.recv(1 << 16):
                other.sendall(data)
                if counts:
                    self.sent += len(data)
                if self.cut_after is not None and self.sent > self.cut_after:
                    self.cut()
        with suppress(OSError):
            other.shutdown(socket.SHUT_WR)

    def cut(self) -> None:
        for each in self.sockets:
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.cut()
        self.listener.close()


class SshHost:
    """An sshd of this machine. `config` is an ssh configuration with the hosts `plain`, `stoker`, `motd` and so on, one for each
    kind of login shell, with `locked`, whose key is refused, `closed`, and `relayed`."""

    def __init__(self, folder: Path, programs: Path):
        self.home = folder / "home"
        self.tools = folder / "tools"
        for each in (self.home, self.tools):
            each.mkdir()
        for key in ("host", "user", "other"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / key], check=True)
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)
        login = folder / "login"
        login.write_text(LOGIN.format(home=self.home, bin=programs, tools=self.tools))
        login.chmod(0o755)
        self.port = free_port()
        (folder / "sshd_config").write_text(
            f"Port {self.port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nPidFile none\nStrictModes no\nUsePAM no\n"
            f"AuthorizedKeysFile {folder}/user.pub\nPermitRootLogin yes\nPrintMotd no\nAcceptEnv FAR\nForceCommand {login}\n"
            "MaxStartups 100\n"
        )
        self.relay = Relay(self.port)
        public = (folder / "host.pub").read_text()
        (folder / "known").write_text("".join(f"[127.0.0.1]:{port} {public}" for port in (self.port, self.relay.port)))

        def host(name: str, port: int, key: str = "user", **more: str) -> str:
            lines = {"HostName": "127.0.0.1", "Port": str(port), "IdentityFile": str(folder / key)} | more
            lines |= {"IdentitiesOnly": "yes", "UserKnownHostsFile": str(folder / "known"), "BatchMode": "yes"}
            return f"Host {name}\n" + "".join(f"  {key} {value}\n" for key, value in lines.items())

        kinds = ("plain", "stoker", "tools", "motd", "fish", "zsh", "bash", "tcsh", "nologin", "small")
        self.config = folder / "config"
        self.config.write_text(
            "".join(host(kind, self.port, SetEnv=f"FAR={kind}") for kind in kinds)
            + host("relayed", self.relay.port)
            + host("locked", self.port, key="other")
            + host("closed", free_port())
        )
        self.log = (folder / "log").open("w")
        self.process = subprocess.Popen([SSHD, "-D", "-e", "-f", folder / "sshd_config"], stderr=self.log)
        wait_until(lambda: answers(self.port) or self.process.poll() is not None, "sshd listens")
        assert self.process.poll() is None, (folder / "log").read_text()

    def client(self, folder: Path) -> Path:
        """A folder with a program `ssh` that knows the hosts."""
        programs = folder / "programs"
        programs.mkdir()
        program = programs / "ssh"
        program.write_text(f'#!/bin/sh\nexec /usr/bin/ssh -F {self.config} "$@"\n')
        program.chmod(0o755)
        return programs

    def tool(self, name: str, text: str) -> None:
        """A program that hides the real one on the host `tools`."""
        (self.tools / name).write_text(f"#!/bin/sh\n{text}\n")
        (self.tools / name).chmod(0o755)

    def close(self) -> None:
        self.relay.close()
        self.process.terminate()
        self.process.wait(30)
        self.log.close()

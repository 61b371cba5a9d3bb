"""Studies with many trials: journals as a worker of a second node would have written them (docs/formats/study.md)."""

import math
from pathlib import Path

TABLE = []
for _byte in range(256):
    for _ in range(8):
        _byte = _byte >> 1 ^ (0x82F63B78 if _byte & 1 else 0)
    TABLE.append(_byte)


def crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


def line(*words) -> bytes:
    text = " ".join(repr(word) if isinstance(word, float) else str(word) for word in words).encode()
    return text + b" #%08x\n" % crc32c(text)


def escaped(text: str) -> str:
    return "".join(f"%{byte:02x}" if byte <= 32 or byte in b"%#\x7f" else chr(byte) for byte in text.encode())


class Journal:
    """Trials of one worker. `point` has a number for each parameter: the index of a choice, nan where it is not active."""

    def __init__(self, study: Path, name: str = "other-0"):
        self.path = study / "journal" / f"{name}.log"
        self.lines: list[bytes] = []

    def trial(
        self, number, point, values=(), *, state="complete", started=1000.0, ended=1010.0, message="", reports=()
    ):
        self.lines.append(line("start", number, 0, started, "random", *point))
        for step, value in reports:
            self.lines.append(line("report", number, 0, step, value))
        if state != "running":
            self.lines.append(line("end", number, 0, ended, state, ":" + escaped(message), *values))

    def skip(self, number, count):
        self.lines.append(line("skip", number, count))

    def write(self):
        self.path.write_bytes(b"".join(self.lines))


def fill(study: Path, count: int, *, hours: float = 2.0) -> None:
    """Trials over lr (log), width (choice) and momentum (only with sgd): most complete, some pruned, failed or running."""
    journal = Journal(study)
    for number in range(count):
        lr = 10 ** (-4 + 4 * (number * 0.6180339887 % 1))
        width = number % 3
        momentum = 0.5 + 0.49 * (number * 0.7548776662 % 1)
        kind = number // 3 % 2
        loss = 0.3 + 0.1 * (math.log10(lr) + 2) ** 2 + 0.05 * width + (0.0 if kind else 0.2 * (momentum - 0.9) ** 2)
        point = (lr, float(width), float(kind), math.nan if kind else momentum)
        started = 1_764_000_000 + hours * 3600 * number / count
        curve = [(step, loss + 1 / step) for step in range(1, 9)]
        times = {"started": started, "ended": started + 40}
        if number % 10 == 7:
            journal.trial(number, point, state="pruned", reports=curve[:3], **times)
        elif number % 25 == 4:
            message = "exit code 1" if number % 2 else "loss is nan <script>alert(1)</script>"
            journal.trial(number, point, state="failed", message=message, **times)
        elif number >= count - 3:
            journal.trial(number, point, state="running", reports=curve[:2], **times)
        else:
            journal.trial(number, point, [loss], reports=curve, **times)
    journal.skip(1, 4)
    journal.write()

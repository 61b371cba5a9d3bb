"""What the checkers of script/check report."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, order=True)
class Finding:
    """One thing wrong at one place. A warning does not fail the check."""

    path: Path
    line: int
    text: str
    is_warning: bool = False

    def __str__(self) -> str:
        kind = "warning: " if self.is_warning else ""
        return f"{self.path}:{self.line}: {kind}{self.text}"

"""Logs as the scripts of the course print them, and the figures that a function shows."""

import json
from pathlib import Path

import pytest

STEP = "GPU process - Forward/Backward"
LOAD = "CPU process - Dataloader"
PERFORMANCE = """\
>>> Training performance time: min 0.09 avg 0.1 seconds (+/- 0.01)
>>> Loading performance time: min 0.01 avg 0.02 seconds (+/- 0.002)
>>> Forward performance time: 0.03 seconds (+/- 0.003)
>>> Backward performance time: 0.06 seconds (+/- 0.004)
"""
HEAD = """\
model: Resnet-152
number of parameters: 60192808
global batch size: 1024 - mini batch size: 256
Optimizer: SGD (
Parameter Group 0
    lr: 0.1
    weight_decay: 0.0
)
image batch shape : torch.Size([256, 3, 224, 224])
"""


def write_log(out: str, err: str = "", job: int = 123, name: str = "pseudo") -> Path:
    """Writes the logs of a job below the working directory; the .out file."""
    folder = Path("slurm/log")
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{name}@JZ_{job}_2nodes_2tasks_2026-01-31_10.00.00"
    (folder / f"{stem}.err").write_text(err)
    (folder / f"{stem}.out").write_text(out)
    return folder / f"{stem}.out"


def times(steps: list[float], loads: list[float]) -> str:
    return f">>>JSON {json.dumps({STEP: steps, LOAD: loads})}\n"


class Figures(list):
    """The matplotlib figures that were shown."""

    def texts(self) -> str:
        """All texts of all figures."""
        from matplotlib.text import Text

        return "\n".join(text.get_text() for figure in self for text in figure.findobj(Text))


@pytest.fixture
def shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Figures:
    """Collects the figures. The test runs in its own folder."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    monkeypatch.chdir(tmp_path)
    figures = Figures()

    def show() -> None:
        figures.extend(pyplot.figure(number) for number in pyplot.get_fignums())
        for figure in figures:
            figure.canvas.draw()  # a text or value that cannot be drawn fails here
        pyplot.close("all")

    monkeypatch.setattr(pyplot, "show", show)
    return figures

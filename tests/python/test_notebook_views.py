"""compare, BatchNorm_view, search_log, and what stoker.notebook imports."""

import sys
from pathlib import Path

import pytest
from course_logs import shown, write_log
from stoker import InvalidError, NotFoundError
from stoker.notebook import BatchNorm_view, compare, search_log

__all__ = ["shown"]


def test_the_import_loads_no_other_library(python):
    code = (
        'import sys, stoker.notebook\nprint({"numpy", "torch", "pandas", "matplotlib", "IPython"} & set(sys.modules))'
    )
    assert python(code) == "set()\n"


def test_a_missing_library_is_named_with_its_cure(python, tmp_path):
    (tmp_path / "log.out").write_text(
        '>>>JSON {"GPU process - Forward/Backward": [1], "CPU process - Dataloader": [1]}\n'
    )
    code = """
import sys
sys.modules["matplotlib"] = None
import stoker.notebook
try:
    stoker.notebook.turbo_profiler("log.out")
except stoker.UnavailableError as error:
    print(error)
"""
    first, cure = python(code).splitlines()[1:]
    assert first.startswith(f"turbo_profiler: needs matplotlib, which {sys.executable} cannot import (")
    assert cure == f"  try: {sys.executable} -m pip install matplotlib"


def test_differences_are_counted_and_written(shown, capsys):
    Path("a.py").write_text("one\ntwo\nthree\n")
    Path("b.py").write_text("one\nTwo\nthree\nfour é\n")
    compare("a.py", "b.py")
    assert capsys.readouterr().out == "a.py and b.py: 2 lines differ (compare.html)\n"
    page = Path("compare.html").read_text(encoding="utf-8")
    assert '<td class="added">four é</td>' in page and "<b>T</b>wo</td>" in page and "<td>three</td>" in page
    compare("a.py", "a.py")
    assert capsys.readouterr().out == "a.py and a.py: no lines differ (compare.html)\n"


def test_a_missing_script_is_named(shown):
    Path("a.py").write_text("")
    with pytest.raises(NotFoundError, match=r"compare: b\.py: no such file"):
        compare("a.py", "b.py")


def test_logs_are_found_by_name_part_and_job(shown):
    paths = [f"{write_log('', job=job, name=name)}" for job, name in ((9, "a"), (10, "a"), (109, "a"), (11, "b"))]
    assert search_log("a") == paths[:3]  # job 9 before job 10
    assert search_log(contains=10) == search_log(contains="10") == [paths[1]]
    assert search_log(contains="2026-01*2nodes") == []
    assert search_log(contains="2nodes*2026-01") == [*paths[:3], paths[3]]
    assert search_log(contains="2026") == paths
    assert search_log(contains="12") == []
    assert search_log("b", with_err=True) == {"stdout": [paths[3]], "stderr": [paths[3].replace(".out", ".err")]}


@pytest.fixture
def model():
    import torch

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.bn1 = torch.nn.BatchNorm2d(4)
            self.downsample = torch.nn.Sequential(torch.nn.Conv2d(4, 4, 1), torch.nn.BatchNorm2d(4))

    return Net()


def save(model, file: str, value: float, prefix: str = "", nested: bool = False) -> None:
    import torch

    state = {prefix + name: torch.full_like(tensor, value) for name, tensor in model.state_dict().items()}
    Path(file).parent.mkdir(exist_ok=True)
    torch.save({"epoch": 3, "model": state} if nested else state, file)


def lines(shown) -> dict[str, list[list[float]]]:
    return {axes.get_title(): [list(line.get_ydata()) for line in axes.lines] for axes in shown[0].axes}


def test_each_batch_norm_layer_of_each_job_is_shown(shown, model):
    save(model, "checkpoints/12_1024.pt", 2.0)
    save(model, "checkpoints/13_1024.pt", 3.0, prefix="module.")  # saved with DistributedDataParallel
    save(model, "checkpoints/123_1024.pt", 9.0)
    BatchNorm_view(["12", 13], model, labels=["BN", "SyncBN"])
    values = ("running_mean", "running_var", "weight", "bias")
    assert lines(shown) == {name: [[2.0, 2.0], [3.0, 3.0]] for name in values}
    names = [label.get_text() for label in shown[0].axes[2].get_xticklabels()]
    assert names == ["bn1", "downsample.1"]
    assert "SyncBN" in shown.texts()


def test_the_model_is_not_changed(shown, model):
    save(model, "checkpoints/12_1024.pt", 2.0)
    BatchNorm_view("12", model)
    assert model.bn1.weight.mean().item() == 1.0


def test_a_checkpoint_within_a_dictionary_is_found(shown, model):
    save(model, "checkpoints/12_1024.pt", 2.0, prefix="_orig_mod.module.", nested=True)
    BatchNorm_view(12, model)
    assert lines(shown)["weight"] == [[2.0, 2.0]]


def test_a_checkpoint_of_a_different_model_is_refused(shown, model):
    import torch

    torch.save({"fc.weight": torch.zeros(3)}, "other.pt")
    with pytest.raises(InvalidError, match=r"other\.pt: has no bn1; it is of a different model"):
        BatchNorm_view("other.pt", model)
    torch.save({"bn1.weight": torch.zeros(4)}, "part.pt")
    with pytest.raises(InvalidError, match=r"part\.pt: has no bn1\.running_mean"):
        BatchNorm_view("part.pt", model)


def test_objects_in_a_checkpoint_are_not_executed(shown, model):
    import torch

    class Evil:
        def __reduce__(self):
            return Path.touch, (Path("executed"),)

    torch.save({"bn1.weight": Evil()}, "evil.pt")
    with pytest.raises(InvalidError, match=r"evil\.pt: "):
        BatchNorm_view("evil.pt", model)
    assert not Path("executed").exists()
    Path("torn.pt").write_bytes(b"PK\x03\x04 torn")
    with pytest.raises(InvalidError, match=r"torn\.pt: "):
        BatchNorm_view("torn.pt", model)


def test_what_cannot_be_shown_is_refused(shown, model):
    import torch

    with pytest.raises(InvalidError, match=r"labels=\['a', 'b'\]: expected a list of 1"):
        BatchNorm_view("12", model, labels=["a", "b"])
    with pytest.raises(InvalidError, match="Linear has no batch normalization layer"):
        BatchNorm_view("12", torch.nn.Linear(2, 2))
    with pytest.raises(NotFoundError, match=r"job 12: no checkpoints/12_\* and no checkpoint of a run\n  try: "):
        BatchNorm_view("12", model)

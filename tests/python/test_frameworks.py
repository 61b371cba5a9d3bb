"""stoker.Loader in training frameworks, with the programs of docs/python-frameworks.md: complete, and interrupted within an
epoch and resumed. The frameworks are installed by script/bootstrap --for peers."""

import re
import shutil

import pytest
from conftest import REPOSITORY

pytestmark = [pytest.mark.soak, pytest.mark.timeout(600)]

PAGE = REPOSITORY / "docs/python-frameworks.md"

# torchvision's wheel is built for the CUDA torch and expects these operators, which nothing here calls.
IMPORT_TORCHVISION = """
import torch
operators = torch.library.Library("torchvision", "FRAGMENT")
for name in ("nms", "qnms"):
    operators.define(name + "(Tensor boxes, Tensor scores, float threshold) -> Tensor")
"""

LIGHTNING = """
class Recording(Model):
    def __init__(self, stops_after=None):
        super().__init__()
        self.seen, self.validated, self.stops_after = [], [], stops_after

    def training_step(self, batch, number):
        self.seen.extend(batch["key"])
        return super().training_step(batch, number)

    def validation_step(self, batch, number):
        self.validated.extend(batch["key"])
        return super().validation_step(batch, number)

    def on_train_batch_end(self, outputs, batch, number):
        if self.global_step == self.stops_after:
            self.trainer.save_checkpoint("stopped.ckpt")
            self.trainer.should_stop = True

    def test_step(self, batch, number):
        self.validated.extend(batch["key"])

    def predict_step(self, batch, number):
        return batch["key"]

def seen(stops_after=None, **how):
    global model, trainer, validation
    model = Recording(stops_after)
    trainer, validation = fit(model, **how)
    return model.seen

def print_validation():
    # 2 x 500 before the training, 2 x 500 after each epoch
    print("validated", len(model.validated), len(set(model.validated[1000:2000])), model.validated[1000:] == model.validated[:1000] * 2)
    for ask in (trainer.validate, trainer.test):
        model.validated.clear()
        ask(model, validation, verbose=False)
        print(ask.__name__, len(model.validated), len(set(model.validated)))
    predicted = [key for keys in trainer.predict(model, validation) for key in keys]
    print("predict", len(predicted), len(set(predicted)))

seen()
print_validation()
whole, begun = seen(), seen(stops_after=13)
rest = seen(ckpt_path="stopped.ckpt", weights_only=False)
"""

TRAINER = """
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layers, self.seen = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3072, 10)), []

    def forward(self, image, label, key):
        self.seen.extend(key)
        logits = self.layers(image)
        return {"loss": torch.nn.functional.cross_entropy(logits, label), "logits": logits}

def seen(folder, **how):
    trainer = train(Model(), folder, **how)
    return trainer.model.seen

whole, begun = seen("whole"), seen("begun", max_steps=13)
rest = seen("begun", resume="begun/checkpoint-13")
"""

PRINT_RESULTS = """
print("samples", len(whole), len(set(whole)), len(set(whole[:5000])))
print("interrupted", len(begun), begun + rest == whole)
"""


VALIDATED = ["validated 3000 1000 True", "validate 1000 1000", "test 1000 1000", "predict 1000 1000"]


@pytest.mark.parametrize(
    ("heading", "code", "validated"),
    [
        pytest.param("Lightning", LIGHTNING, VALIDATED, marks=pytest.mark.needs("lightning")),
        pytest.param("Trainer", TRAINER, [], marks=pytest.mark.needs("transformers")),
    ],
)
def test_the_page_program_trains_and_resumes_exactly(heading, code, validated, example_dataset, python, tmp_path):
    shutil.copytree(example_dataset, tmp_path / "cifar10-6000")
    section = PAGE.read_text().partition(f"## {heading}\n")[2]
    shown = re.search(r"^```python\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)[1]
    out = python(IMPORT_TORCHVISION + shown + code + PRINT_RESULTS, timeout=500)
    assert set(validated) <= set(out.splitlines())
    assert out.splitlines()[-2:] == ["samples 10000 5000 5000", "interrupted 6500 True"]

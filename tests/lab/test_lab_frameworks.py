"""Other people's training loops on two nodes, unchanged, however their ranks are started. The frameworks come with what the
benches compare with (script/bootstrap --for peers)."""

import sys
from pathlib import Path

import pytest
from submitted import Runs

pytestmark = [pytest.mark.needs("slurm"), pytest.mark.soak, pytest.mark.timeout(600)]

# torchvision's wheel is built for the CUDA torch and expects these operators, which nothing here calls.
IMPORT_TORCHVISION = """
import torch
operators = torch.library.Library("torchvision", "FRAGMENT")
for name in ("nms", "qnms"):
    operators.define(name + "(Tensor boxes, Tensor scores, float threshold) -> Tensor")
"""

LIGHTNING = """
import pytorch_lightning as lightning, torch

class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
    def training_step(self, batch, number):
        return torch.nn.functional.mse_loss(self.layer(batch[0]), batch[1])
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=0.01)

data = torch.utils.data.TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
trainer = lightning.Trainer(max_epochs=2, accelerator="cpu", devices=1, num_nodes=2, strategy="ddp", logger=False,
                            enable_progress_bar=False, enable_checkpointing=False)
trainer.fit(Model(), torch.utils.data.DataLoader(data, batch_size=8))
print("trained", trainer.global_rank, trainer.world_size, trainer.global_step)
"""

ACCELERATE = """
import torch
from accelerate import Accelerator

accelerator = Accelerator(cpu=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
data = torch.utils.data.TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
model, optimizer, loader = accelerator.prepare(model, optimizer, torch.utils.data.DataLoader(data, batch_size=8))
steps = 0
for epoch in range(2):
    for x, y in loader:
        optimizer.zero_grad()
        accelerator.backward(torch.nn.functional.mse_loss(model(x), y))
        optimizer.step()
        steps += 1
print("trained", accelerator.process_index, accelerator.num_processes, steps)
"""

TRAINER = """
import torch
from transformers import Trainer, TrainingArguments

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)
    def forward(self, x, labels):
        return {"loss": torch.nn.functional.mse_loss(self.layer(x), labels)}

data = [{"x": torch.randn(4), "labels": torch.randn(1)} for _ in range(64)]
arguments = TrainingArguments("out", num_train_epochs=2, per_device_train_batch_size=8, use_cpu=True, report_to=[],
                              save_strategy="no", disable_tqdm=True)
trainer = Trainer(model=Model(), args=arguments, train_dataset=data)
trainer.train()
print("trained", arguments.process_index, arguments.world_size, trainer.state.global_step)
"""


@pytest.mark.parametrize("launcher", ["srun", "torchrun"])
@pytest.mark.parametrize(
    "script",
    [
        pytest.param(LIGHTNING, id="lightning", marks=pytest.mark.needs("lightning")),
        pytest.param(ACCELERATE, id="accelerate", marks=pytest.mark.needs("transformers")),
        pytest.param(TRAINER, id="trainer", marks=pytest.mark.needs("transformers")),
    ],
)
def test_a_framework_trains_on_two_nodes(runs: Runs, script: str, launcher: str):
    (runs.folder / "train.py").write_text(IMPORT_TORCHVISION + script)
    (runs.folder / "job.yaml").write_text(
        f"name: framework\nrun: {sys.executable} train.py\nresources: {{nodes: 2, cpus_per_rank: 1}}\n"
        f"launcher: {launcher}\n"
    )
    runs.submit(env={"PATH": f"{Path(sys.executable).parent}:{runs.lab.env['PATH']}"})
    assert runs.wait() == f"run {runs.run.name}: done\n"
    for rank in (0, 1):
        assert f"trained {rank} 2 8" in runs.log(rank).splitlines()

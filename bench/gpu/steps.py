"""Training steps in Python on synthetic data that is already on the GPU: the peers of bench/gpu_steps.cc.

    python bench/gpu/steps.py [WORKLOAD...] [--modes eager,foreach,graph,compile] [--windows 3] [--seconds 1]

    eager    autocast and SGD with fused=True
    foreach  the same with foreach=True
    graph    the whole step of `eager`, captured as a CUDA graph
    compile  torch.compile(mode="reduce-overhead") of model and loss, with fused SGD

The modes of a workload alternate in one process. Prints one JSON line per workload and mode. TF32 is off.
`--warm` only compiles, to fill Inductor's cache for a later run."""

import argparse
import time
from collections.abc import Callable

import torch
from torch.nn import functional as F  # noqa: N812  (its name everywhere)
from windows import Step, alternate, first_line, images_per_s, print_line, print_machine, wait_for
from workloads import WORKLOADS, Workload, batch_of, model_of

WARM_UP = 6  # reduce-overhead runs, records and replays


class Training:
    """A model with its optimizer and one batch."""

    def __init__(self, workload: Workload, device: str, foreach: bool = False, compiled: bool = False):
        torch.manual_seed(0)
        self.device, self.bf16 = device, workload.bf16
        self.model = model_of(workload, device)
        self.images, self.labels = batch_of(workload, device)
        self.sgd = torch.optim.SGD(
            self.model.parameters(), 0.01, momentum=0.9, weight_decay=1e-4, foreach=foreach, fused=not foreach
        )
        self.forward: Callable[[], torch.Tensor] = self.loss
        if compiled:
            self.forward = torch.compile(self.loss, mode="reduce-overhead", dynamic=False)

    def loss(self) -> torch.Tensor:
        with torch.autocast(self.device, torch.bfloat16, enabled=self.bf16):
            logits = self.model(self.images)
        return F.cross_entropy(logits.float(), self.labels)

    def step(self) -> None:
        self.sgd.zero_grad(set_to_none=True)
        self.forward().backward()
        self.sgd.step()

    def warm(self) -> Step:
        for _ in range(WARM_UP):
            self.step()
        wait_for(self.device)
        return self.step


def captured(training: Training) -> Step:
    """The whole step as one CUDA graph."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        training.warm()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.empty_cache()  # the blocks of the warm-up's stream
    graph = torch.cuda.CUDAGraph()
    training.sgd.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        training.forward().backward()
        training.sgd.step()

    def replay(_owner: Training = training) -> None:  # the graph uses the memory of `training`
        graph.replay()

    return replay


MODES: dict[str, Callable[[Workload, str], Step]] = {
    "eager": lambda workload, device: Training(workload, device).warm(),
    "foreach": lambda workload, device: Training(workload, device, foreach=True).warm(),
    "graph": lambda workload, device: captured(Training(workload, device)),
    "compile": lambda workload, device: Training(workload, device, compiled=True).warm(),
}


def prepare(workload: Workload, modes: list[str], device: str) -> tuple[dict[str, Step], dict[str, float]]:
    """Steps of the modes that work here, and seconds until each was ready; prints the errors of the remaining modes."""
    steps: dict[str, Step] = {}
    ready_s: dict[str, float] = {}
    for mode in modes:
        started = time.perf_counter()
        try:
            steps[mode] = MODES[mode](workload, device)
        except Exception as error:
            print_line(workload=workload.name, who="python", mode=mode, failed=first_line(error))
            continue
        ready_s[mode] = round(time.perf_counter() - started, 1)
        if device == "cuda":
            torch.cuda.empty_cache()
    return steps, ready_s


def measure(workload: Workload, options: argparse.Namespace) -> None:
    torch.compiler.reset()
    steps, ready_s = prepare(workload, ["compile"] if options.warm else options.modes, options.device)
    if options.warm:
        for mode, seconds in ready_s.items():
            print_line(workload=workload.name, who="python", mode=mode, ready_s=seconds)
        return
    rates = alternate(steps, options.windows, options.seconds, options.device)
    for mode in steps:
        print_line(
            workload=workload.name,
            who="python",
            mode=mode,
            **images_per_s(rates[mode], workload.batch),
            ready_s=ready_s[mode],
        )


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=f"default: {' '.join(WORKLOADS)}")
    parser.add_argument("--modes", type=lambda text: text.split(","), default=list(MODES))
    parser.add_argument("--windows", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.0, help="length of a window")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--warm", action="store_true")
    options = parser.parse_args()
    for name in options.workloads:
        if name not in WORKLOADS:
            parser.error(f"no workload '{name}' (available: {', '.join(WORKLOADS)})")
    for mode in options.modes:
        if mode not in MODES:
            parser.error(f"no mode '{mode}' (available: {', '.join(MODES)})")
    return options


def main() -> None:
    options = parse_arguments()
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = False
    print_machine(options.device)
    for name in options.workloads or WORKLOADS:
        measure(WORKLOADS[name], options)


if __name__ == "__main__":
    main()

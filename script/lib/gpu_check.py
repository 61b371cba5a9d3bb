"""script/gpu-check: options, and the order of things."""

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import gpu_check_prepare
from gpu_check_parts import PARTS, REPOSITORY, environment, machine, parts_of, places_of
from gpu_check_run import Part, Results, Runner
from gpu_check_table import table

DESCRIPTION = """\
Run all GPU tests, then the benches beside Python's frameworks, and print a table. Needs Python with torch and
torchvision for CUDA, but no package manager and no network.

  script/gpu-check                              with the programs of this checkout's build
  script/gpu-check --prepare FOLDER             build everything into a folder to copy to another machine
  script/gpu-check --from FOLDER                run there, in a checkout, with the programs of this folder
"""


def parse_arguments(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="script/gpu-check", description=DESCRIPTION, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--from", dest="source", type=Path, metavar="FOLDER", help="use the programs in this folder")
    parser.add_argument("--only", action="append", choices=list(PARTS), help="run only this part (may be repeated)")
    parser.add_argument("--dry-run", action="store_true", help="print the commands and check that their files exist")
    parser.add_argument("--budget", type=float, default=480, metavar="SECONDS", help="limit the time (default: 480)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results as JSON")
    parser.add_argument("--logs", type=Path, metavar="FOLDER", help="keep the output of the commands in this folder")
    parser.add_argument("--prepare", type=Path, metavar="FOLDER", help="build into this folder, and run nothing")
    parser.add_argument(
        "--torch", type=Path, metavar="PREFIX", help="--prepare: folder of the torch wheel to build with"
    )
    parser.add_argument("--include", type=Path, metavar="FOLDER", help="--prepare: folder of CUDA's headers")
    parser.add_argument("--python", default="python3.12", help="--prepare: Python to build the module for")
    parser.add_argument("--photographs", type=Path, help="--prepare: archive or folder of JPEG files to copy")
    parser.add_argument("--cifar10", type=Path, help="--prepare: archive of all of CIFAR-10 to pack")
    options = parser.parse_args(words)
    if options.budget <= 0:
        parser.error(f"--budget {options.budget:g}: expected more than 0 seconds")
    return options


def interpreter() -> str:
    """The Python that has torch: of .venv, else this one."""
    tools = REPOSITORY / ".venv/bin/python"
    return str(tools) if tools.exists() else sys.executable


def dry_run(parts: list[Part], budget_s: float, is_prepared: bool) -> int:
    """1 if a file is missing that a checkout, or a prepared folder, has."""
    shares, missing = sum(part.share for part in parts), 0
    for part in parts:
        print(f"{part.name}: up to {budget_s * part.share / shares:.0f} s")
        for command in (*part.ahead, *part.commands):
            print(f"  {command.name}: {shlex.join(command.words)}")
            for path in command.missing():
                is_ours = REPOSITORY in path.parents and "build" not in path.relative_to(REPOSITORY).parts
                missing += is_prepared or is_ours
                print(f"    missing: {path}" + (f" ({command.otherwise})" if command.otherwise else ""))
    return 1 if missing else 0


def run(parts: list[Part], options: argparse.Namespace, variables: dict[str, str], logs: Path) -> Results:
    logs.mkdir(parents=True, exist_ok=True)
    runner = Runner(logs, options.budget, variables, lambda text: print(text, flush=True))
    return runner.run(parts)


def conclude(results: Results, target: Path | None, gpu: str = "") -> int:
    print(f"\n{table(results.lines)}\n")
    for outcome in results.outcomes:
        if outcome.state != "ok":
            print(f"{outcome.state}: {outcome.part}: {outcome.name}: {outcome.detail}")
    for line in results.lines:
        if reason := line.get("failed") or line.get("not_run"):
            print(f"not measured: {line.get('workload')} {line.get('who')} {line.get('mode')}: {reason}")
    if target:
        content = {
            "machine": gpu,
            "lines": results.lines,
            "outcomes": [asdict(outcome) for outcome in results.outcomes],
        }
        target.write_text(json.dumps(content, indent=1) + "\n")
    return 1 if results.failed_tests else 0


def main(words: list[str] | None = None) -> int:
    options = parse_arguments(words)
    if options.prepare:
        return prepare(options)
    with tempfile.TemporaryDirectory(prefix="gpu-check-") as folder:
        work = Path(folder)
        source = options.source.resolve() if options.source else None
        places = places_of(source, interpreter(), work)
        parts = parts_of(places, options.only or list(PARTS))
        if options.dry_run:
            return dry_run(parts, options.budget, source is not None)
        if not (gpu := machine(places)):
            print(
                f"script/gpu-check: torch of {places.python} finds no GPU\n  try: script/gpu-check --dry-run",
                file=sys.stderr,
            )
            return 3
        print(gpu, flush=True)
        results = run(parts, options, environment(places), (options.logs or work / "logs").resolve())
        return conclude(results, options.json, gpu)


def prepare(options: argparse.Namespace) -> int:
    wanted = gpu_check_prepare.Options(
        options.prepare.resolve(),
        options.torch,
        options.include,
        options.python,
        options.photographs,
        options.cifar10,
    )
    try:
        gpu_check_prepare.prepare(wanted)
    except (subprocess.CalledProcessError, OSError) as error:
        output = getattr(error, "stderr", None) or ""
        print(f"{output}script/gpu-check: {error}", file=sys.stderr)
        return 1
    return 0

"""Checks that the code in a cure works when pasted: each piece is passed to the parser of its language."""

import ast
import json
import re
import shlex
import subprocess
from pathlib import Path

from conftest import REPOSITORY

KEYS = set(re.findall(r"^\| `([a-z_.*]+)` \|", (REPOSITORY / "docs/job-file.md").read_text(), re.MULTILINE))
SECTIONS = {key.split(".")[0] for key in KEYS}
# Looks like code: has to be in backticks.
CODE = re.compile(r"#SBATCH|\bstoker [a-z]|(?<!\w)--[a-z]|[{}$=]|\w\(|\.\.\.|…")
SENTENCE = re.compile(r"`([^`]+)`")


def is_yaml(code: str) -> bool:
    return (match := re.match(r"([a-z_]+): ", code)) is not None and match[1] in SECTIONS


class Cures:
    """Collects the code of cures, then checks each kind at once."""

    def __init__(self, stoker, folder: Path):
        self.stoker = stoker
        self.folder = folder
        self.pieces: dict[str, set[str]] = {"sbatch": set(), "yaml": set(), "stoker": set(), "shell": set()}

    def add(self, cure: str, *, script: bool, job_file: bool) -> None:
        """A cure with its code in backticks. `script`, `job_file`: whether the user has one."""
        assert cure.count("`") % 2 == 0, cure
        assert not CODE.search(SENTENCE.sub("", cure)), f"code without backticks: {cure}"
        for code in SENTENCE.findall(cure):
            self.add_code(code, script=script, job_file=job_file)

    def add_code(self, code: str, *, script: bool = True, job_file: bool = True) -> None:
        assert "..." not in code and "…" not in code, f"not complete: {code}"
        if code.startswith("#SBATCH "):
            assert script, f"for a batch script, which the user lacks: {code}"
            self.pieces["sbatch"].add(code)
        elif is_yaml(code):
            assert job_file, f"for a job file, which the user lacks: {code}"
            self.pieces["yaml"].add(code)
        elif re.fullmatch(r"[a-z_]+(\.[a-z_]+)+", code) and code.split(".")[0] in SECTIONS:
            assert code in KEYS, f"no key of the job file: {code}"
        elif code.startswith("stoker "):
            self.pieces["stoker"].add(code)
        else:
            self.pieces["shell"].add(code)

    def check(self) -> None:
        for code in sorted(self.pieces["sbatch"]):
            self.check_directive(code)
        for code in sorted(self.pieces["yaml"]):
            self.check_job_file(code)
        for code in sorted(self.pieces["stoker"]):
            self.check_command(code)
        self.check_shell(sorted(self.pieces["shell"]))

    def check_directive(self, line: str) -> None:
        script = self.folder / "cure.sbatch"
        time = "" if "--time" in line else "#SBATCH --time=1:00:00\n"
        script.write_text(f"#!/bin/bash\n{line}\n{time}srun hostname\n")
        done = self.stoker("check", script, "--site", "none", "--json")
        found = {each["rule"] for each in json.loads(done.out)["findings"] if each["line"] == 2}
        # A name in capitals is for the user to replace.
        assert found <= {"placeholder"}, f"{line}: {found}"

    def check_job_file(self, line: str) -> None:
        """Merged into a job file: later sections replace earlier ones."""
        (self.folder / "FOLDER").mkdir(exist_ok=True)
        (self.folder / "FIRST.yaml").write_text("name: first\nrun: hostname\n")
        for table in ("values.csv", "configs.csv"):
            (self.folder / table).write_text("params.lr\n0.1\n")
        sections = {"name": "name: cure", "run": "run: python train.py", "resources": "resources: {time: 100h}"}
        sections[line.split(":")[0]] = line
        (self.folder / "cure.yaml").write_text("\n".join(sections.values()) + "\n")
        done = self.stoker("check", "cure.yaml", "--print", cwd=self.folder)
        assert done.code == 0, f"{line}: {done.err}"

    def check_command(self, command: str) -> None:
        words = shlex.split(command)[1:]
        done = self.stoker(*words, "--no-such-option", cwd=self.folder)
        assert done.code == 2 and "unknown option '--no-such-option'" in done.err, f"{command}: {done.err}"

    def check_shell(self, pieces: list[str]) -> None:
        """Python if bash refuses it. Stoker's parser accepts what bash accepts."""
        script = self.folder / "cure.sh"
        accepted = []
        for code in pieces:
            if subprocess.run(["bash", "-n"], input=code, text=True, capture_output=True).returncode == 0:
                accepted.append(code)
            else:
                ast.parse(f"{code}\n    pass" if code.endswith(":") else code)
        script.write_text("#!/bin/bash\n" + "\n".join(accepted) + "\n")
        found = json.loads(self.stoker("check", script, "--site", "none", "--json").out)["findings"]
        assert [each for each in found if each["rule"] == "syntax"] == []

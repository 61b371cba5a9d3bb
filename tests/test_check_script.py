"""stoker check SCRIPT: findings in a user script, with line, reason and corrected line."""

import hashlib
import json
import os
import subprocess
from pathlib import Path

import needs
import pytest
from conftest import REPOSITORY

EXPECTED = json.loads((REPOSITORY / "tests/golden/check/course.json").read_text())

SCRIPT = """\
#!/bin/bash
#SBATCH --ntaks-per-node=4
#SBATCH --time=1:00:00
#SBATCH --output=logs/%j.out
#SBATCH --nodes=2
tar xf data.tar -C $SLURM_TMPDIR
srun --kill-on-bad-exit=1 python -u train.py $SLURM_TMPDIR
"""


def write(folder: Path, text: str | bytes, name: str = "train.sbatch") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def findings(done) -> list[tuple[int, str, str]]:
    return [(f["line"], f["level"], f["rule"]) for f in json.loads(done.out)["findings"]]


def test_findings_have_line_reason_and_corrected_line(stoker, tmp_path):
    write(tmp_path, SCRIPT)
    done = stoker("check", "train.sbatch", code=1)
    assert done.err == ""
    tail = "no such option, sbatch rejects the script; did you mean --ntasks-per-node? [loses the job: misspelt-option]"
    assert done.out.splitlines() == [
        f"train.sbatch:2: --ntaks-per-node: {tail}",
        "    - #SBATCH --ntaks-per-node=4",
        "    + #SBATCH --ntasks-per-node=4",
        "train.sbatch:4: log folder logs does not exist: before Slurm 23.02 the job ends at once without an error message [loses the job: log-folder]",
        "    4 | #SBATCH --output=logs/%j.out",
        "      |                  ^",
        "    try: mkdir -p logs",
        "train.sbatch:6: tar runs on the first node only; the second node has nothing in $SLURM_TMPDIR [loses the job: first-node-only]",
        "    - tar xf data.tar -C $SLURM_TMPDIR",
        "    + srun --ntasks=$SLURM_NNODES --ntasks-per-node=1 tar xf data.tar -C $SLURM_TMPDIR",
        "3 findings, 3 would lose the job; stoker check --fix train.sbatch writes train.fixed.sbatch (--in-place: the file itself)",
    ]


def test_log_folder_findings_depend_on_the_slurm_version(stoker, tmp_path):
    write(tmp_path, "#!/bin/bash\n#SBATCH --time=1:00:00 -o logs/%j.out\nsrun hostname\n")
    fakes = tmp_path / "bin"
    fakes.mkdir()
    write(fakes, "#!/bin/sh\necho slurm 23.11.4\n", "sbatch").chmod(0o755)
    asked = {"STOKER_SLURM_RELEASE": None, "PATH": f"{fakes}:{os.environ['PATH']}"}
    assert findings(stoker("check", "train.sbatch", "--json", env=asked, code=0)) == []
    write(fakes, "#!/bin/sh\necho slurm-wlm 22.05.8\n", "sbatch")
    expected = [(2, "job", "log-folder")]
    assert findings(stoker("check", "train.sbatch", "--json", env=asked, code=1)) == expected
    variables = {"STOKER_SLURM_RELEASE": "24.05"}
    assert findings(stoker("check", "train.sbatch", "--json", "--site", "none", env=variables, code=0)) == []
    # An sbatch that hangs is not waited for.
    write(fakes, "#!/bin/sh\nexec sleep 600\n", "sbatch")
    assert findings(stoker("check", "train.sbatch", "--json", env=asked, code=1)) == expected


def test_a_better_tool_is_suggested(stoker, tmp_path):
    write(tmp_path, "#!/bin/bash\nfor lr in 0.1 0.01 0.001; do\n  sbatch train.sh $lr\ndone\n", "all.sh")
    done = stoker("check", "all.sh", code=0)
    assert done.out.splitlines() == [
        "all.sh:3: one job per value: an array is one submission, with a limit on concurrent tasks and retries of "
        "failed ones [advice: sbatch-loop]",
        "    3 |   sbatch train.sh $lr",
        "      |   ^",
        "    try: sbatch --array=1-3%3 SCRIPT",
        "1 finding, 0 would lose the job",
    ]


def test_a_correct_script_has_no_findings(stoker, tmp_path):
    write(tmp_path, "#!/bin/bash\n#SBATCH --time=1:00:00\nsrun hostname\n")
    assert stoker("check", "train.sbatch", code=0).out == "train.sbatch: no findings\n"


def test_json_has_every_finding(stoker, tmp_path):
    write(tmp_path, SCRIPT)
    value = json.loads(stoker("check", "train.sbatch", "--json", code=1).out)
    assert list(value) == ["script", "loses_job", "findings"]
    assert value["script"] == "train.sbatch"
    assert value["loses_job"] is True
    assert value["findings"][0] == {
        "line": 2,
        "column": 9,
        "level": "job",
        "rule": "misspelt-option",
        "text": "--ntaks-per-node: no such option, sbatch rejects the script; did you mean --ntasks-per-node?",
        "fix": "#SBATCH --ntasks-per-node=4",
    }


def test_sarif_has_rules_levels_and_positions(stoker, tmp_path):
    write(tmp_path, SCRIPT)
    value = json.loads(stoker("check", "train.sbatch", "--sarif", code=1).out)
    assert value["version"] == "2.1.0"
    (run,) = value["runs"]
    rules = {rule["id"] for rule in run["tool"]["driver"]["rules"]}
    assert {result["ruleId"] for result in run["results"]} <= rules
    first = run["results"][0]
    assert first["level"] == "error"
    assert first["locations"][0]["physicalLocation"] == {
        "artifactLocation": {"uri": "train.sbatch"},
        "region": {"startLine": 2, "startColumn": 9},
    }
    assert json.loads(stoker("check", "train.sbatch", "--sarif", "--json", code=1).out) == value


def test_fix_writes_a_corrected_script_next_to_it(stoker, tmp_path):
    script = write(tmp_path, SCRIPT)
    script.chmod(0o750)
    done = stoker("check", "--fix", "train.sbatch", code=0)
    assert done.out.splitlines()[-2:] == [
        f"created {tmp_path}/logs",
        "3 findings, 3 would lose the job; 3 fixed in train.fixed.sbatch",
    ]
    fixed = tmp_path / "train.fixed.sbatch"
    assert fixed.read_text() == SCRIPT.replace("ntaks", "ntasks").replace(
        "tar xf", "srun --ntasks=$SLURM_NNODES --ntasks-per-node=1 tar xf"
    )
    assert fixed.stat().st_mode & 0o777 == 0o750
    assert script.read_text() == SCRIPT
    assert (tmp_path / "logs").is_dir()
    assert stoker("check", "train.fixed.sbatch", code=0).out == "train.fixed.sbatch: no findings\n"


def test_fix_does_not_overwrite_foreign_files(stoker, tmp_path):
    write(tmp_path, SCRIPT)
    write(tmp_path, "mine", "train.fixed.sbatch")
    done = stoker("check", "--fix", "train.sbatch", code=1)
    assert done.err == "train.fixed.sbatch: already exists with different content\n  try: rm train.fixed.sbatch\n"
    assert (tmp_path / "train.fixed.sbatch").read_text() == "mine"


def test_in_place_corrects_the_file_itself_through_a_link(stoker, tmp_path):
    real = write(tmp_path, "#!/bin/bash\n#SBATCH --tine=1\necho\n", "real.sh")
    (tmp_path / "link.sh").symlink_to("real.sh")
    stoker("check", "--in-place", "link.sh", code=0)
    assert (tmp_path / "link.sh").is_symlink()
    assert real.read_text() == "#!/bin/bash\n#SBATCH --time=1\necho\n"


def test_options_for_the_wrong_file_type_are_rejected(stoker, tmp_path):
    write(tmp_path, SCRIPT)
    write(tmp_path, "run: 'true'\n", "job.yaml")
    assert stoker("check", "job.yaml", "--fix", code=2).err == (
        "job.yaml: not a batch script; --fix, --in-place, --sarif and --site need one\n"
    )
    assert stoker("check", "train.sbatch", "--print", code=2).err == (
        "train.sbatch: a batch script; --set, --print, --production and --on-nodes need a job file\n"
    )


def test_limits_come_from_the_requested_site(stoker, tmp_path):
    write(tmp_path, "#!/bin/bash\n#SBATCH --time=9-00\npip install torch\n")
    done = stoker("check", "train.sbatch", "--site", "narval", "--json", code=1)
    assert findings(done) == [(2, "job", "site-limit"), (2, "job", "site-limit"), (3, "time", "no-network")]
    assert findings(stoker("check", "train.sbatch", "--site", "none", "--json", code=0)) == []
    assert stoker("check", "train.sbatch", "--site", "narwal", code=1).err.startswith("site narwal: unknown profile")


@pytest.mark.parametrize(
    ("content", "code", "message"),
    [
        (b"#!/bin/bash\n\0", 2, "x.sh: a zero byte at byte 12, and Slurm rejects such a script"),
        (b"", 2, "x.sh: is empty"),
        (b"#!/bin/bash\n" + b"#" * (4 << 20), 2, "x.sh: 4194316 bytes, Slurm accepts scripts of at most 4194304"),
    ],
)
def test_scripts_that_slurm_rejects_are_rejected(stoker, tmp_path, content, code, message):
    write(tmp_path, content, "x.sh")
    assert stoker("check", "x.sh", code=code).err == message + "\n"


def test_folders_and_pipes_are_rejected_at_once(stoker, tmp_path):
    (tmp_path / "folder.sh").mkdir()
    os.mkfifo(tmp_path / "pipe.sh")
    assert stoker("check", "folder.sh", code=2).err == "folder.sh: is a folder, expected a file\n"
    assert stoker("check", "pipe.sh", code=2).err == "pipe.sh: is not a regular file\n"
    assert stoker("check", "none.sh", code=1).err.startswith("none.sh: ")


def test_an_unreadable_file_is_an_error(stoker, tmp_path):
    if os.geteuid() == 0:
        tmp_path.chmod(0o755)
    write(tmp_path, SCRIPT).chmod(0)
    user = {"user": 65534} if os.geteuid() == 0 else {}
    done = stoker("check", "train.sbatch", code=2, **user)
    assert done.err == "train.sbatch: permission denied\n"


def test_control_characters_are_escaped(stoker, tmp_path):
    write(tmp_path, b"#!/bin/bash\r\n#SBATCH --tine\x1b[31m=1\r\necho caf\xe9 \x1b]0;x\x07 $(ls -t *.pt | head -1)\r\n")
    done = stoker("check", "train.sbatch", code=1)
    assert "\x1b" not in done.out
    assert "\x07" not in done.out
    assert "dos-line-ends" in done.out


def test_long_lines_and_deep_nesting_are_read_in_time(stoker, tmp_path):
    write(tmp_path, "#!/bin/bash\n./a --seed $RANDOM " + "x" * 4_000_000 + "\n")
    assert len(stoker("check", "train.sbatch", timeout=100).out) < 4000
    write(tmp_path, "#!/bin/bash\n" + "$(" * 1_000_000)
    assert "commands are nested too deeply" in stoker("check", "train.sbatch", timeout=100).out[:4000]
    write(tmp_path, "#!/bin/bash\n" + "a && " * 500_000 + "b\n")
    stoker("check", "train.sbatch", code=0, timeout=100)
    write(tmp_path, "#!/bin/bash\n" + "exec " * 500_000 + "b\n")
    stoker("check", "train.sbatch", code=0, timeout=100)


MANY_NAMES = {
    "read": "./a $value{0}.x\n",
    "chained": "V{0}=$value{0}\n",
    "chained, with letters at the end": "V{0}x=$value{0}x\n",
    "given": "V{0}=1\n./a $V{0}\n",
    "of a command": "V{0}=1 ./a $V{0}\n",
    "in quotes": "# V{0}\nbash -c './a $V{0}'\n",
    "seeds": "a{0}_seed=$RANDOM\n",
    "lists": "V{0}=[a b]\nexport V{0}\n",
}


@pytest.mark.parametrize("form", sorted(MANY_NAMES))
def test_thousands_of_variables_are_read_in_time(stoker, tmp_path, form):
    lines = "".join(MANY_NAMES[form].format(i) for i in range(20_000))
    write(tmp_path, "#!/bin/bash\n#SBATCH -N 1\n" + lines)
    assert "would lose the job" in stoker("check", "train.sbatch", timeout=100).out[-100:]


def test_the_rules_are_listed(stoker, tmp_path):
    rules = json.loads(stoker("check", "--rules", "--json", code=0).out)["rules"]
    assert len(rules) >= 50
    page = (REPOSITORY / "docs/script-rules.md").read_text()
    rows = [f"| `{rule['rule']}` | {rule['level']} | {rule['why']} |" for rule in rules]
    assert [row for row in rows if row not in page] == []
    assert page.count("\n| `") == len(rows)


@pytest.mark.needs("scripts")
@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_course_scripts_have_the_expected_findings(stoker, tmp_path, name):
    text = (needs.test_data() / "batch-scripts" / name).read_bytes()
    assert hashlib.sha256(text).hexdigest() == EXPECTED[name]["sha256"]
    write(tmp_path, text, name)
    expected = sorted((f["line"], f["level"], f["rule"]) for f in EXPECTED[name]["findings"])
    code = 1 if any(level == "job" for _, level, _ in expected) else 0
    assert sorted(findings(stoker("check", name, "--json", code=code))) == expected


def test_shell_scripts_are_parsed_as_by_bash(stoker, tmp_path):
    """Bash and the reader agree on what is a script and what has a mistake in it; each script is cut off in places, too."""
    folders = [REPOSITORY / name for name in ("script", "tests", "examples", ".ci")]
    texts = [path.read_text() for folder in folders for path in sorted(folder.rglob("*")) if is_shell(path)]
    assert len(texts) > 8
    disagreed = []
    for text in texts:
        for part in (text, text[: len(text) // 2], text[: len(text) // 3]):
            write(tmp_path, part, "part.sh")
            bash = subprocess.run(["bash", "-n", "part.sh"], cwd=tmp_path, capture_output=True, text=True)
            if "here-document" in bash.stderr:
                continue  # a warning for bash, and a separate finding here
            found = {rule for _, _, rule in findings(stoker("check", "part.sh", "--json"))}
            if ("syntax" in found) != (bash.returncode != 0):
                disagreed.append((part[-200:], bash.stderr))
    assert disagreed == []


def is_shell(path: Path) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(64).startswith((b"#!/usr/bin/env bash", b"#!/bin/bash", b"#!/bin/sh"))

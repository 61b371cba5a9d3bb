"""Batch scripts as courses and clusters' guides print them, unchanged but for what a reader has to fill in, through
`stoker submit SCRIPT` on a lab that has the modules, programs and data they expect: unchanged, and as `stoker check --fix`
corrects them.

Each PATCH lists every word that is filled in or scaled to the lab. The scripts themselves are other people's text and are
read from the folder of test data."""

import json
import os
import tarfile
import textwrap
from pathlib import Path

import needs
import pytest
from labs import Lab
from submitted import Runs

pytestmark = [pytest.mark.needs("slurm", "lmod", "scripts"), pytest.mark.soak]

# What a site's modules give: a Python, `virtualenv`, conda. `prepend_path` and the like are Lmod's own words.
MODULES = {
    "StdEnv/2020": "",
    "python/3.6": "",
    "python/3.9.6": "",
    "python/3.10": "",
    "cuda/9": "",
    "cudnn/7": "",
    "opensource/miniforge": 'set_shell_function("conda", "export CONDA_DEFAULT_ENV=$2", "")\n',
}

VIRTUALENV = """\
    #!/bin/bash
    # The site's: packages come from the site's Python, pip from nowhere.
    folder="${@: -1}"
    python3 -m venv --without-pip --system-site-packages "$folder"
    printf '#!/bin/sh\\necho "pip $*"\\n' > "$folder/bin/pip"
    chmod +x "$folder/bin/pip"
    """

PATCHES: dict[str, dict[str, str]] = {
    "hello.sh": {},
    "extremeweather.sh": {"/scratch/<username>": "{shared}/scratch"},
    "ml-test.sh": {"--mem=32000M": "--mem=320M", "--cpus-per-task=3": "--cpus-per-task=2", "def-xxxx": "def-lab"},
    "ml-test-chain.sh": {
        "#SBATCH ...\n": "",
        "\n# Prepare virtualenv\n...\n": "\n# Prepare virtualenv\nsource ~/my_env/bin/activate\n",
        "\n# Prepare data\n...\n": "\n# Prepare data\nSOURCEDIR=~/ml-test\n",
        " ...\n": "\n",
    },
    "venv-every-node.sh": {},
    "ddp-demo.sh": {},
    "notes-example.sh": {
        "--ntaks-per-node": "--ntasks-per-node",
        "--cpus-per-task=4": "--cpus-per-task=1",
        "--mem=118GB": "--mem=1GB",
        "#SBATCH --account=def-ncoops_gpu": "#",
        "xxx_usr_prod": "gpu",
        "gpu:kepler:N": "gpu:2",
        "#SBATCH --qos=<qos_name>": "#",
        "outjobfile-J.out": "outjobfile-%J.out",
        "(the notes go\x20on:)": "",  # the words of the notes
        "module load ...": "module load python/3.10",
        "execution commands": "srun echo rank",
    },
}


class Course(Runs):
    """A folder on the lab with the modules, programs and a home as the scripts expect them."""

    def __init__(self, lab: Lab, corrects: bool = False):
        self.corrects = corrects
        folder = lab.shared / "course"
        folder.mkdir()
        super().__init__(lab, folder)
        self.home = lab.shared / "home"
        bin_folder = lab.shared / "bin"
        self.write(bin_folder / "virtualenv", VIRTUALENV).chmod(0o755)
        (bin_folder / "python").symlink_to("/usr/bin/python3")
        for name, body in MODULES.items():
            (file := lab.shared / "modules" / f"{name}.lua").parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f'prepend_path("PATH", "{bin_folder}")\n{body}')
        self.variables = {"HOME": str(self.home), "MODULEPATH": str(lab.shared / "modules")}

    @staticmethod
    def write(path: Path, text: str) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    def script(self, name: str) -> str:
        text = (needs.test_data() / "batch-scripts" / name).read_text()
        for old, new in PATCHES[name].items():
            assert old in text, f"{name} has no {old!r}"
            text = text.replace(old, new.format(shared=self.lab.shared))
        (self.folder / name).write_text(text)
        return self.corrected(name) if self.corrects else name

    def corrected(self, name: str) -> str:
        """The script that `stoker check --fix` writes, in which nothing is left that would lose the job."""
        done = self.lab.stoker("check", "--fix", name, "--json", cwd=self.folder, env=self.variables, code=None)
        fixed = json.loads(done.out)["fixed"]
        again = self.lab.stoker("check", fixed or name, "--json", cwd=self.folder, env=self.variables, code=None)
        losing = [f["rule"] for f in json.loads(again.out)["findings"] if f["level"] == "job"]
        assert set(losing) <= NOT_MENDED.get(name, set()), losing
        return fixed or name

    def made(self, folder: str) -> str:
        """The note of submit about a log folder; `check --fix` creates it before."""
        return "" if self.corrects else f"made  {folder}: "

    def submit(self, name: str, *words: str, code: int | None = 0) -> str:
        """Submits as from a login shell, which has `module`."""
        # The unchanged scripts have mistakes for which submit refuses them.
        command = ["stoker", "submit", "--force", self.script(name), *words]
        shell = '. "$LMOD" && exec "$@"'
        environment = self.variables | {"LMOD": "/usr/share/lmod/lmod/init/bash"}
        done = self.lab.run("bash", "-c", shell, "-", *command, cwd=self.folder, env=environment, code=code)
        return done.out if code == 0 else done.err


# What only the author knows: here these scripts are meant so.
NOT_MENDED = {"extremeweather.sh": {"results-left"}}


@pytest.fixture(params=["unchanged", "corrected"])
def course(lab: Lab, request: pytest.FixtureRequest) -> Course:
    return Course(lab, request.param == "corrected")


def test_hello(course: Course):
    course.submit("hello.sh", "World")
    course.wait()
    assert course.log(0) == "Hello, World\nBye!\n"


def test_code_and_data_are_copied_to_the_node(course: Course):
    train = 'import sys; print("train", open(sys.argv[2]).read(), "test", open(sys.argv[4]).read())\n'
    course.write(course.folder / "code/train.py", train)
    course.write(course.folder / "code/data/train.csv", "1,2")
    course.write(course.folder / "code/data/test.csv", "3,4")
    assert course.made(f"{course.lab.shared}/scratch/logs") in course.submit("extremeweather.sh", "code")
    course.wait()
    log = course.log(0)
    assert log.endswith("train 1,2 test 3,4\n")
    assert "sbatch file name: " in log
    assert "/slurm_script\n" in log
    (node_folder,) = [line for line in log.splitlines() if line.endswith("/code")]
    assert not Path(node_folder).exists()  # it was the job's own, on the node's disk


def test_one_gpu_with_its_data_in_a_tar(course: Course):
    with tarfile.open(course.write(course.home / "projects/def-lab/data.tar", ""), "w") as archive:
        archive.add(course.write(course.folder / "image-1", "pixels"), "images/image-1")
    course.write(course.home / "my_env/bin/activate", "export VIRTUAL_ENV=~/my_env\n")
    show = 'import os, sys; print(os.listdir(sys.argv[1]), os.environ["CUDA_VISIBLE_DEVICES"])\n'
    course.write(course.home / "ml-test/train.py", show)
    course.submit("ml-test.sh")
    course.wait()
    assert course.log(0) == "['images'] 0\n"


def test_a_chain_resumes_from_its_last_checkpoint(course: Course):
    course.write(course.home / "my_env/bin/activate", "")
    (course.home / "scratch/checkpoints/ml-test").mkdir(parents=True)
    train = """\
        import pathlib, sys
        options = dict(zip(sys.argv[1::2], sys.argv[2::2]))
        before = options.get("--load-checkpoint")
        step = int(pathlib.Path(before).stem) + 1 if before else 1
        (pathlib.Path(options["--write-checkpoints-to"]) / f"{step}.h5").touch()
        print("step", step)
        """
    course.write(course.home / "ml-test/train.py", train)
    assert ", 10 tasks)" in course.submit("ml-test-chain.sh")
    course.wait()
    assert [course.log(link) for link in range(1, 11)] == [f"step {step}\n" for step in range(1, 11)]


def test_a_virtual_environment_on_every_node(course: Course):
    course.write(course.folder / "requirements.txt", "numpy\n")
    course.write(course.folder / "myscript.py", "import sys; print(sys.prefix)\n")
    course.submit("venv-every-node.sh")
    course.wait()
    lines = course.log(0).splitlines()
    assert lines.count("pip install --no-index -r requirements.txt") == 2
    assert sum(line.endswith("/env") for line in lines) == 2


@pytest.mark.parametrize("corrects", [False, True], ids=["unchanged", "corrected"])
def test_ddp_template_of_two_nodes_with_four_gpus(make_lab, corrects):
    lab = make_lab("course", "--nodes", "2", "--cpus", "32", "--gpus", "4")
    course = Course(lab, corrects)
    rendezvous = """\
        import os, socket, sys, time
        address, port = sys.argv[sys.argv.index("--master_addr") + 1], int(sys.argv[sys.argv.index("--master_port") + 1])
        rank, world = int(os.environ["SLURM_PROCID"]), int(os.environ["SLURM_NTASKS"])
        if rank == 0:
            server = socket.socket(); server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            server.bind(("", port)); server.listen(64)
            print("met", sorted(int(server.accept()[0].recv(9)) for _ in range(world - 1)), os.environ["NCCL_DEBUG"])
        else:
            for _ in range(600):
                try: socket.create_connection((address, port)).sendall(str(rank).encode()); break
                except OSError: time.sleep(0.05)
        """
    course.write(course.folder / "train.py", rendezvous)
    assert course.made("logs") in course.submit("ddp-demo.sh")
    course.wait()
    assert course.log(0) == f"met [1, 2, 3, 4, 5, 6, 7] {'WARN' if corrects else 'INFO'}\n"
    assert [file.suffix for file in sorted((course.folder / "logs").iterdir())] == [".err", ".out"]


def test_a_users_notes_with_a_misspelt_option(course: Course):
    course.script("notes-example.sh")
    typo = (needs.test_data() / "batch-scripts/notes-example.sh").read_text()
    (course.folder / "typo.sh").write_text(typo)
    refused = course.lab.stoker("submit", "typo.sh", "--force", cwd=course.folder, code=2).err
    assert "(typo.sh:3; did you mean '--ntasks-per-node'?)" in refused
    course.submit("notes-example.sh", "--sbatch=--ntasks-per-node=2")
    course.wait()
    assert course.log(0) == "rank\n" * 2


def test_the_job_file_beside_a_script_is_shorter(lab: Lab):
    """The DDP template: modules, environment, addresses, log folders, one srun. As a job file it is this."""
    job = """\
        run: python3 -u train.py --dist
        resources: {nodes: 2, ranks_per_node: 2}
        slurm: {partition: gpu}
        environment: {variables: {NCCL_DEBUG: INFO}}
        """
    course = Course(lab)
    course.write(course.folder / "job.yaml", job)
    course.write(course.folder / "train.py", 'import os; print(os.environ["RANK"], os.environ["MASTER_PORT"] != "")\n')
    runs = json.loads(course.stoker("submit", "job.yaml", "--json").out)
    course.wait(runs["run"])
    assert [course.log(rank) for rank in range(4)] == [f"{rank} True\n" for rank in range(4)]
    lines = len([line for line in textwrap.dedent(job).splitlines() if line.strip()])
    script = (needs.test_data() / "batch-scripts/ddp-demo.sh").read_text().splitlines()
    assert lines < len([line for line in script if line.strip() and not line.startswith("# ")]) / 2
    assert os.path.isdir(course.run / "capsule")

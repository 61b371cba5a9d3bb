"""Site profiles: the shipped ones are complete, jobs are checked against them, an unknown cluster gets a generated one."""

import datetime
import json
import subprocess
from pathlib import Path

import pytest
from conftest import REPOSITORY, Stoker
from labs import Lab

SITES = sorted(path.stem for path in (REPOSITORY / "sites").glob("*.yaml"))


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str | None]:
    """An environment without a cluster and with a separate home."""
    return {"HOME": str(tmp_path / "home"), "XDG_CONFIG_HOME": None, "SLURM_CONF": "/nowhere"}


def own(tmp_path: Path, name: str, text: str) -> Path:
    file = tmp_path / f"home/.config/stoker/sites/{name}.yaml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def job(tmp_path: Path, more: str) -> Path:
    file = tmp_path / "job.yaml"
    file.write_text(f"name: digits\nrun: sleep 1\n{more}")
    return file


@pytest.mark.parametrize("name", SITES)
def test_every_value_of_a_shipped_profile_has_a_source_with_a_date(stoker: Stoker, home, name: str):
    shown = json.loads(stoker("site", "show", name, "--json", code=0, env=home).out)
    for group in ("partitions", "qos", "nodes", "storage"):
        for entry in shown[group].values():
            assert entry["from"] in shown["sources"]
    for source in shown["sources"].values():
        assert source["url"].startswith("http")
        assert datetime.date(2024, 1, 1) < datetime.date.fromisoformat(source["date"]) <= datetime.date(2026, 12, 31)


def test_sites_are_listed_and_old_names_resolve_to_successors(stoker: Stoker, home):
    sites = {site["name"]: site for site in json.loads(stoker("site", "list", "--json", env=home).out)["sites"]}
    assert {"narval", "rorqual", "fir", "nibi", "trillium", "jean-zay", "leonardo", "generic"} <= set(sites)
    assert sites["beluga"]["what"] == "now rorqual"
    assert [name for name, site in sites.items() if site["here"]] == ["generic"]
    for old, new in {"beluga": "rorqual", "cedar": "fir", "graham": "nibi", "niagara": "trillium"}.items():
        shown = stoker("site", "show", old, code=0, env=home)
        assert shown.err == f"site {old} is now {new}\n"
        assert shown.out.startswith(f"name: {new}\n")


def test_detects_the_cluster_from_its_configuration(stoker: Stoker, home, tmp_path: Path):
    (tmp_path / "slurm.conf").write_text("ClusterName=Narval\n")
    here = home | {"SLURM_CONF": str(tmp_path / "slurm.conf")}
    assert stoker("site", "show", env=here, code=0).out.startswith("name: narval\n")
    output = stoker("site", "detect", env=here, code=0).out
    assert output.startswith("this is narval: Narval, ")


def test_a_job_over_its_sites_limits_ends_before_the_queue(stoker: Stoker, home, tmp_path: Path):
    job(tmp_path, "site: jean-zay\nresources: {time: 30h}\nslurm: {account: abc@v100, partition: prepost}\n")
    refused = stoker("submit", "job.yaml", "--dry-run", env=home, code=2)
    assert refused.err == (
        "job.yaml:4:19: resources.time: 1d6h is over the limit of partition 'prepost' (20h, site jean-zay)\n"
        "  see http://www.idris.fr/en/docs/jean-zay/slurm/slurm_partitions_cpu (2026-05-17)\n"
        "  try: chain: {until: done, time_per_link: 20h}\n"
    )
    job(tmp_path, "site: jean-zay\nresources: {time: 2h}\n")
    refused = stoker("submit", "job.yaml", "--dry-run", env=home, code=2).err
    assert refused.startswith("slurm.account: slurm.account: not set, but site jean-zay requires one: PROJECT@v100")
    job(tmp_path, "site: jean-zay\nresources: {time: 2h}\nslurm: {account: abc@v100}\n")
    assert stoker("submit", "job.yaml", "--dry-run", env=home, code=0).out.startswith("#!/bin/bash\n")
    job(tmp_path, "site: none\nresources: {time: 900h}\n")
    stoker("submit", "job.yaml", "--dry-run", env=home, code=0)


def script(tmp_path: Path, options: str) -> Path:
    file = tmp_path / "train.sh"
    file.write_text(f"#!/bin/bash\n#SBATCH --nodes=1\n{options}srun python train.py\n")
    return file


def test_a_user_script_is_checked_against_the_site_with_line_and_source(stoker: Stoker, home, tmp_path: Path):
    here = home | {"STOKER_SET_SITE": "jean-zay"}
    asks = ("submit", "train.sh", "--dry-run")
    script(tmp_path, "#SBATCH -A abc@cpu\n#SBATCH --partition=prepost --time=1-06:00:00\n")
    refused = stoker(*asks, env=here, code=2)
    assert refused.out == ""
    assert refused.err == (
        "train.sh:4: --time: 1d6h is over the limit of partition 'prepost' (20h, site jean-zay)\n"
        "  see http://www.idris.fr/en/docs/jean-zay/slurm/slurm_partitions_cpu (2026-05-17)\n"
        "  try: #SBATCH --time=20:00:00\n"
    )
    # A value on the command line has a different position.
    refused = stoker(*asks, "--sbatch=--time=40:00:00", env=here, code=2).err
    assert refused.startswith("--sbatch: --time: 1d16h is over the limit of partition 'prepost' (20h, site jean-zay)\n")
    assert stoker(*asks, "--sbatch=--time=20:00:00", env=here, code=0).err == ""
    assert stoker(*asks, "--set", "site=none", env=here, code=0).err == ""
    script(tmp_path, "")
    refused = stoker(*asks, env=here, code=2).err
    assert refused.startswith(
        "slow: --time: not set; the default of partition 'cpu_p1' is 10m (site jean-zay)\n"
        "train.sh: --account: not set, but site jean-zay requires one: PROJECT@v100"
    )
    assert stoker(*asks, env=here | {"SBATCH_ACCOUNT": "abc@cpu"}, code=0).err == (
        "slow: --time: not set; the default of partition 'cpu_p1' is 10m (site jean-zay)\n"
    )
    # Advice does not prevent the submission.
    options = "#SBATCH -A abc@h100 -p gpu_p6 -t 2:00:00\n#SBATCH --gres=gpu:4 --ntasks-per-node=4 -c 40\n"
    script(tmp_path, options)
    output = stoker(*asks, env=here, code=0)
    assert output.out.startswith("#!/bin/bash\n")
    assert output.err == "advice: --cpus-per-task: 40 with 1 GPU, whose fair share is 24 at most (site jean-zay)\n"


def test_a_longer_qos_is_the_cure_for_a_long_script(stoker: Stoker, home, tmp_path: Path):
    here = home | {"STOKER_SET_SITE": "leonardo"}
    script(tmp_path, "#SBATCH -A grant\n#SBATCH -p boost_usr_prod\n#SBATCH --time=3-00:00:00\n")
    refused = stoker("submit", "train.sh", "--dry-run", env=here, code=2).err.splitlines()
    assert refused[0] == "train.sh:5: --time: 3d is over the limit of partition 'boost_usr_prod' (1d, site leonardo)"
    assert refused[-1] == "  try: #SBATCH --qos=boost_qos_lprod"
    stoker("submit", "train.sh", "--sbatch=--qos=boost_qos_lprod", "--dry-run", env=here, code=0)
    large = ("submit", "train.sh", "--sbatch=--qos=boost_qos_lprod", "--sbatch=--nodes=8", "--dry-run")
    assert stoker(*large, env=here, code=2).err.startswith(
        "--sbatch: --nodes: 8 requested, but QoS 'boost_qos_lprod' allows at most 3 per job (site leonardo)\n"
    )


JEAN_ZAY_LIMITS = [
    # V100 without a partition, and with a constraint
    ("-A a@v100 --gres=gpu:4 -t 30:00:00", "default QoS 'qos_gpu-t3' (20h", "--qos=qos_gpu-t4"),
    ("-A a@v100 --gres=gpu:4 -C v100-32g -t 30:00:00", "default QoS 'qos_gpu-t3' (20h", "--qos=qos_gpu-t4"),
    ("-A a@v100 --gres=gpu:8 -p gpu_p2 -t 30:00:00", "default QoS 'qos_gpu-t3' (20h", "--qos=qos_gpu-t4"),
    ("-A a@a100 --gres=gpu:8 -C a100 -t 30:00:00", "default QoS 'qos_gpu_a100-t3' (20h", "--time=20:00:00"),
    ("-A a@h100 --gres=gpu:4 -C h100 -t 30:00:00", "default QoS 'qos_gpu_h100-t3' (20h", "--qos=qos_gpu_h100-t4"),
    ("-A a@cpu -t 30:00:00", "default QoS 'qos_cpu-t3' (20h", "--qos=qos_cpu-t4"),
    ("-A a@a100 --gres=gpu:8 -C a100 -q qos_gpu_a100-dev -t 3:00:00", "QoS 'qos_gpu_a100-dev' (2h", "--time=02:00:00"),
    ("-A a@h100 --gres=gpu:4 -C h100 -q qos_gpu_h100-t4 -t 101:00:00", "QoS 'qos_gpu_h100-t4' (4d4h", "--time=4-04"),
]


@pytest.mark.parametrize(("options", "limit", "cure"), JEAN_ZAY_LIMITS)
def test_a_time_over_the_qos_of_jean_zay_ends_before_the_queue(
    stoker: Stoker, home, tmp_path: Path, options: str, limit: str, cure: str
):
    script(tmp_path, f"#SBATCH {options}\n")
    refused = stoker("submit", "train.sh", "--dry-run", env=home | {"STOKER_SET_SITE": "jean-zay"}, code=2).err
    assert refused.startswith("train.sh:3: --time: ")
    assert f"{limit}, site jean-zay)\n" in refused
    assert f"\n  try: #SBATCH {cure}" in refused


def test_a_qos_of_jean_zay_limits_gpus_and_jobs(stoker: Stoker, home, tmp_path: Path):
    here = home | {"STOKER_SET_SITE": "jean-zay"}
    asks = ("submit", "train.sh", "--dry-run")
    h100 = "#SBATCH -A a@h100 -C h100 --gres=gpu:4 --ntasks-per-node=4"
    script(tmp_path, f"{h100} -t 90:00:00 --qos=qos_gpu_h100-t4\n")
    assert stoker(*asks, "--sbatch=--nodes=16", env=here, code=0).err == ""
    assert stoker(*asks, "--sbatch=--nodes=17", env=here, code=2).err.startswith(
        "train.sh:3: --gres: 68 requested in total, but QoS 'qos_gpu_h100-t4' allows at most 64 per job "
        "(site jean-zay)\n"
    )
    script(tmp_path, f"{h100} -t 1:00:00 --qos=qos_gpu_h100-dev\n")
    assert stoker(*asks, "--sbatch=--array=1-11", env=here, code=2).err.startswith(
        "--sbatch: --array: 11 jobs, but QoS 'qos_gpu_h100-dev' allows a user at most 10 at a time (site jean-zay)\n"
    )


def test_a_job_file_without_a_qos_is_checked_against_the_default_one(stoker: Stoker, home, tmp_path: Path):
    job(tmp_path, "site: jean-zay\nresources: {time: 30h, gpus_per_rank: 1}\nslurm: {account: abc@v100}\n")
    refused = stoker("submit", "job.yaml", "--dry-run", env=home, code=2).err.splitlines()
    assert refused[0] == (
        "job.yaml:4:19: resources.time: 1d6h is over the limit of the default QoS 'qos_gpu-t3' (20h, site jean-zay)"
    )
    assert refused[1].startswith("  see https://github.com/bigscience-workshop/bigscience/")
    assert refused[2] == "  try: slurm: {qos: qos_gpu-t4}"


def test_a_job_without_a_partition_is_checked_against_the_default_one(stoker: Stoker, home, tmp_path: Path):
    job(tmp_path, "site: leonardo\nresources: {time: 5h}\nslurm: {account: grant}\n")
    assert stoker("submit", "job.yaml", "--dry-run", env=home, code=2).err.startswith(
        "job.yaml:4:19: resources.time: 5h is over the limit of partition 'lrd_all_serial' (4h, site leonardo)\n"
    )


@pytest.mark.parametrize("name", ["fir", "narval", "nibi", "rorqual"])
def test_the_general_clusters_of_the_alliance_have_limits(stoker: Stoker, home, name: str):
    limits = json.loads(stoker("site", "show", name, "--json", code=0, env=home).out)["limits"]
    assert limits == {"time_s": 604800, "shortest_s": 3600, "jobs": 1000, "nodes": None, "array": None}


def test_check_reports_findings_of_the_site(stoker: Stoker, home, tmp_path: Path):
    job(tmp_path, "site: narval\nresources: {time: 200h, gpus_per_rank: 1, cpus_per_rank: 24}\n")
    found = json.loads(stoker("check", "job.yaml", "--json", env=home).out)["findings"]
    rules = {finding["rule"]: finding["level"] for finding in found}
    assert rules["over-time"] == "job"
    assert rules["no-account"] == "job"
    assert rules["unfair-share"] == "advice"


def test_the_users_profile_overrides_and_its_errors_are_reported(stoker: Stoker, home, tmp_path: Path):
    file = own(tmp_path, "narval", "name: narval\nwhat: mine\n")
    assert stoker("site", "show", "narval", env=home, code=0).out == "name: narval\nwhat: mine\n"
    file.write_text("name: narval\nwhat: mine\nlimits: {time: 20, from: page}\n")
    wrong = stoker("site", "show", "narval", env=home, code=2).err
    assert f"{file}:3:16: limits.time: '20' has no unit (write 20s, 20m or 20h)\n" in wrong
    assert "unknown source 'page'" in wrong
    (site,) = [s for s in json.loads(stoker("site", "list", "--json", env=home).out)["sites"] if s["name"] == "narval"]
    assert site["damaged"]


def test_a_missing_site_is_reported_with_a_suggestion(stoker: Stoker, home, tmp_path: Path):
    wrong = stoker("site", "show", "naval", env=home)
    assert wrong.code == 1
    assert wrong.err == "site naval: unknown profile; did you mean 'narval'?\n  try: stoker site list\n"
    job(tmp_path, "site: naval\n")
    wrong = stoker("submit", "job.yaml", "--dry-run", env=home, code=2).err
    assert wrong.startswith("job.yaml:3:7: site naval: unknown profile; did you mean 'narval'?\n")


@pytest.mark.needs("namespaces")
def test_a_users_profile_cannot_relax_enforced_limits(stoker: Stoker, home, tmp_path: Path):
    enforced = tmp_path / "site.yaml"
    enforced.write_text(
        "name: ours\nwhat: Ours\nsources: {rules: {url: intranet, date: 2026-11-01}}\n"
        "limits: {time: 2h, from: rules}\npartitions: {gpu: {time: 1h, from: rules}}\n"
    )
    job(tmp_path, "resources: {time: 90m}\nslurm: {partition: gpu}\n")
    own(
        tmp_path,
        "ours",
        "name: ours\nwhat: free\nsources: {me: {url: me, date: 2026-11-01}}\nlimits: {time: 900h, from: me}\n",
    )
    # /etc is private to this test.
    script = f'mount -t tmpfs none /etc && mkdir /etc/stoker && cp {enforced} /etc/stoker/ && exec "$@"'
    for site in ("auto", "ours", "generic"):
        command = ["unshare", "-m", "sh", "-c", script, "-", stoker.path, "submit", "job.yaml", "--dry-run", "--set"]
        environment = {"PATH": "/usr/bin:/bin", "HOME": home["HOME"]}
        done = subprocess.run(
            [*command, f"site={site}"], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 2, done.stderr
        assert "90m is over the limit of partition 'gpu' (1h, site" in done.stderr.replace("1h30m", "90m")


@pytest.mark.needs("slurm")
def test_an_unknown_cluster_gets_a_generated_profile(lab: Lab, tmp_path: Path):
    home = {"HOME": str(tmp_path / "home"), "XDG_CONFIG_HOME": "", "SCRATCH": "/scratch/me"}
    shown = lab.stoker("site", "detect", "--dry-run", env=home).out
    output = lab.stoker("site", "detect", env=home).out
    file = tmp_path / f"home/.config/stoker/sites/{lab.name}.yaml"
    assert output.startswith(f"this is {lab.name}: ")
    assert file.read_text() == shown
    profile = json.loads(lab.stoker("site", "show", "--json", env=home).out)
    assert profile["name"] == lab.name
    assert profile["limits"]["array"] == 1001
    assert profile["partitions"]["debug"]["time_s"] == 120
    assert profile["nodes"]["gpu"]["gpus"] == 2
    assert profile["storage"]["scratch"]["path"] == "$SCRATCH"
    assert lab.stoker("site", "detect", env=home).out.startswith(f"this is {lab.name}: ")
    (lab.shared / "job.yaml").write_text("run: sleep 1\nresources: {time: 10m}\nslurm: {partition: debug}\n")
    refused = lab.stoker("submit", "job.yaml", env=home, code=2).err
    assert f"10m is over the limit of partition 'debug' (2m, site {lab.name})" in refused

#include "job/settings.h"

#include <array>
#include <initializer_list>
#include <vector>

namespace stoker::job {
namespace {

using config::Setting;
using config::Type;

constexpr std::array kCommand = {
    Setting{.key = "name",
            .unset = "the name of the job file's folder",
            .what = "What runs are called: letters, digits, '.', '_' and '-', at most 64."},
    Setting{.key = "working_directory",
            .type = Type::path,
            .unset = "the job file's folder",
            .what = "Where the ranks run."},
    Setting{.key = "run",
            .type = Type::words,
            .unset = "`train` says what to run",
            .what = "The command every rank executes, split by shell quoting, without a shell."},
    Setting{.key = "run.shell", .what = "A command line for /bin/sh, in place of `run: COMMAND`."},
};

constexpr std::array kRun = {
    Setting{
        .key = "params.*", .unset = "none", .what = "A value of your own, used elsewhere as ${params.NAME}."},

    Setting{.key = "resources.nodes",
            .type = Type::count,
            .fallback = "1",
            .at_least = 1,
            .at_most = 10000,
            .what = "Machines; 1 outside an allocation."},
    Setting{.key = "resources.ranks_per_node",
            .type = Type::count,
            .fallback = "1",
            .at_least = 1,
            .at_most = 1024,
            .what = "Processes started on each node.",
            .see = "RANK, LOCAL_RANK and WORLD_SIZE are derived from it."},
    Setting{.key = "resources.ranks",
            .type = Type::count,
            .unset = "nodes x ranks_per_node",
            .at_least = 1,
            .at_most = 1e6,
            .what =
                "Processes of all nodes together, where nodes have unequally many: 7 on 2 nodes are 4 and 3, "
                "or as the allocation says."},
    Setting{.key = "resources.cpus_per_rank",
            .type = Type::count,
            .unset = "the cores at hand, shared out evenly",
            .at_least = 1,
            .at_most = 4096,
            .what = "Cores each rank may use."},
    Setting{.key = "resources.gpus_per_rank",
            .type = Type::count,
            .fallback = "0",
            .at_least = 0,
            .at_most = 64,
            .what = "GPUs asked for with `stoker submit`, times `ranks_per_node` on each node.",
            .see = "Read in the queue only; here the ranks see all GPUs there are."},
    Setting{.key = "resources.ranks_per_gpu",
            .type = Type::count,
            .fallback = "1",
            .at_least = 1,
            .at_most = 64,
            .what =
                "Ranks that share a GPU; above 1 every rank sees one GPU alone (CUDA_VISIBLE_DEVICES), and "
                "that decides how many are asked for."},
    Setting{.key = "resources.memory_per_node",
            .type = Type::size,
            .unset = "the partition's default",
            .at_least = 1048576,
            .what = "Memory asked for with `stoker submit`.",
            .see = "Read in the queue only."},
    Setting{.key = "resources.time",
            .type = Type::duration,
            .unset = "no limit; in the queue the partition's default",
            .at_least = 1,
            .what = "The run is ended when it has lasted this long; in the queue the job's time limit."},

    Setting{
        .key = "site",
        .fallback = "auto",
        .what =
            "The cluster's profile (`stoker site list`) that a submitted job is held against: `auto` for the "
            "one that is here, `none` for no look at one."},
    Setting{
        .key = "slurm.account", .unset = "your default account", .what = "Whose hours a submitted job uses."},
    Setting{.key = "slurm.partition",
            .unset = "the cluster's default partition",
            .what = "Where a submitted job queues; several with commas between them."},
    Setting{.key = "slurm.qos", .unset = "your default", .what = "Quality of service of a submitted job."},
    Setting{.key = "slurm.reservation", .unset = "none", .what = "The reservation a submitted job runs in."},
    Setting{.key = "slurm.extra",
            .type = Type::texts,
            .unset = "none",
            .what = "More options for sbatch, one an entry: [--constraint=v100, --exclusive]."},

    Setting{.key = "environment.modules",
            .type = Type::texts,
            .unset = "none",
            .what = "What `module load` loads before the ranks start, here or on the job's first node: "
                    "[python/3.11, cuda]."},
    Setting{.key = "environment.conda",
            .unset = "none",
            .what = "The conda environment to activate, by name or folder; after the modules."},
    Setting{.key = "environment.venv",
            .type = Type::path,
            .unset = "none",
            .what = "A Python virtual environment, whose programs are found first; or a requirements file, "
                    "of which every "
                    "node makes one on its own disk."},
    Setting{.key = "environment.container",
            .type = Type::path,
            .unset = "none",
            .what = "The ranks run in this image of Charliecloud: a folder, or a SquashFS file."},
    Setting{.key = "environment.wheelhouse",
            .type = Type::path,
            .unset = "where pip is set up to look",
            .what = "A folder of wheels: packages of `venv` come from here and from nowhere else."},
    Setting{.key = "environment.variables.*",
            .unset = "none",
            .what = "A variable for every rank.",
            .names = config::Names::as_written},

    Setting{.key = "code.snapshot",
            .type = Type::boolean,
            .fallback = "false",
            .what = "The run uses a read-only copy of the repository's files as they are now, changed and "
                    "new ones too; "
                    "relative paths of the command are in that copy."},
    Setting{.key = "code.untracked_limit",
            .type = Type::size,
            .fallback = "10MB",
            .at_least = 0,
            .what = "Files that git does not track are left out of it when they are larger."},

    Setting{.key = "data.*.source",
            .type = Type::path,
            .what = "Folder of a packed dataset; the ranks find it as STOKER_DATA_<NAME>."},
    Setting{.key = "data.*.split", .unset = "the only one it has", .what = "Which of its splits."},

    Setting{
        .key = "stage.unpack",
        .type = Type::texts,
        .unset = "none",
        .what =
            "Archives (tar, tar.zst, tar.gz, zip) unpacked on every node's own disk before its ranks start.",
        .see = "The ranks find them in STOKER_STAGE_DIR."},
    Setting{.key = "stage.copy",
            .type = Type::texts,
            .unset = "none",
            .what = "Files and folders copied there, too."},
    Setting{
        .key = "stage.back",
        .type = Type::texts,
        .unset = "none",
        .what =
            "Files and folders in STOKER_STAGE_DIR that are copied to the attempt's folder after the run, "
            "whatever ended it."},
    Setting{.key = "stage.outside_links",
            .type = Type::boolean,
            .fallback = "false",
            .what = "Symbolic links of archives may lead out of the folder they are unpacked into."},
    Setting{.key = "stage.directory",
            .type = Type::path,
            .unset = "SLURM_TMPDIR, TMPDIR or /tmp of each node",
            .what = "Where each run makes its folder on every node."},
    Setting{.key = "stage.timeout",
            .type = Type::duration,
            .fallback = "30m",
            .at_least = 1,
            .what = "How long all of it may take before the ranks start."},

    Setting{
        .key = "checkpoint.directory",
        .type = Type::path,
        .unset = "`checkpoints` in the run folder",
        .what =
            "Each run makes a folder named for itself in here; the ranks find it as STOKER_CHECKPOINT_DIR."},
    Setting{.key = "checkpoint.local",
            .type = Type::path,
            .unset = "straight to shared storage",
            .what = "A folder on each node's own disk: `train` writes there first, and from there to "
                    "`directory` while "
                    "it goes on.",
            .see = "A step counts as saved once it is in `directory`."},
    Setting{
        .key = "checkpoint.every",
        .type = Type::every,
        .fallback = "1 epoch",
        .choices = "auto|steps|epochs",
        .at_least = 1,
        .what =
            "How often `train` saves; a command of your own decides itself. `auto`: from what a save costs "
            "and how often the job fails (mtbf), by Daly's formula."},
    Setting{.key = "checkpoint.mtbf",
            .type = Type::duration,
            .fallback = "1d",
            .at_least = 60,
            .what = "Mean time between failures of the whole job, for `every: auto`."},
    Setting{.key = "checkpoint.keep",
            .type = Type::count,
            .fallback = "3",
            .at_least = 1,
            .at_most = 1e6,
            .what = "The newest so many are kept."},
    Setting{.key = "checkpoint.keep_every",
            .type = Type::duration,
            .fallback = "0s",
            .at_least = 0,
            .what = "The first of each such stretch of time is kept, too: 6h; 0s for none."},
    Setting{.key = "checkpoint.keep_best",
            .type = Type::count,
            .fallback = "0",
            .at_least = 0,
            .at_most = 1e6,
            .what = "So many that are best by `metric` are kept, too; `train` then also saves after each "
                    "validation."},
    Setting{.key = "checkpoint.metric",
            .type = Type::choice,
            .fallback = "val_top1",
            .choices = "val_top1|val_top5|val_loss",
            .what = "By what `keep_best` judges: of a loss the least, of others the most is best."},
    Setting{
        .key = "checkpoint.before_end",
        .type = Type::duration,
        .fallback = "2m",
        .at_least = 0,
        .at_most = 86400,
        .what =
            "How long before the time of the run or of its allocation is over the ranks get SIGUSR1: save "
            "and stop; at most a quarter of that time, 0s for never.",
        .see = "Slurm may be a minute early or late."},

    Setting{.key = "launcher",
            .type = Type::choice,
            .fallback = "srun",
            .choices = "srun|torchrun|single",
            .what =
                "Inside an allocation: srun starts a task per rank on all its nodes, single starts the ranks "
                "here. torchrun: one on each node starts the ranks of it, here too."},
};

constexpr std::array kRecord = {
    Setting{.key = "record.directory",
            .type = Type::path,
            .fallback = "runs",
            .what = "Where run folders are made; by default in the current folder."},
    Setting{.key = "record.metrics",
            .type = Type::boolean,
            .fallback = "true",
            .what = "Writes `train`'s figures of every step and epoch."},
    Setting{.key = "record.receipts",
            .type = Type::boolean,
            .fallback = "false",
            .what = "Writes which samples each rank saw in each step."},
    Setting{.key = "record.trace",
            .type = Type::count,
            .fallback = "0",
            .at_least = 0,
            .at_most = 10000,
            .what = "So many of `train`'s first steps of each attempt are traced: phases and exchanges of "
                    "each rank, for "
                    "Perfetto."},
    Setting{.key = "record.sample_every",
            .type = Type::duration,
            .fallback = "1s",
            .at_least = 0.1,
            .at_most = 3600,
            .what = "How often CPU, memory and I/O of the ranks are looked at."},

    Setting{.key = "timeouts.start",
            .type = Type::duration,
            .fallback = "2m",
            .at_least = 1,
            .what = "Until every rank must have started."},
    Setting{.key = "timeouts.stall",
            .type = Type::duration,
            .fallback = "10m",
            .at_least = 1,
            .what = "How long a rank may show no progress: no step and no CPU time."},
    Setting{.key = "timeouts.data",
            .type = Type::duration,
            .fallback = "5m",
            .at_least = 1,
            .what = "How long `train` waits for one batch of its data."},
    Setting{.key = "timeouts.stopped",
            .type = Type::duration,
            .fallback = "5s",
            .at_least = 1,
            .what = "How long a rank may be stopped by a signal."},
    Setting{.key = "timeouts.communication",
            .type = Type::duration,
            .fallback = "10m",
            .at_least = 1,
            .what = "How long one exchange between `train`'s ranks may take."},
    Setting{.key = "timeouts.checkpoint",
            .type = Type::duration,
            .fallback = "5m",
            .at_least = 1,
            .what = "How long a checkpoint waits for the other ranks' parts."},
    Setting{.key = "timeouts.grace",
            .type = Type::duration,
            .fallback = "10s",
            .at_least = 0,
            .at_most = 3600,
            .what = "Between SIGTERM and SIGKILL when a run is ended."},
};

std::vector<Setting> joined(std::initializer_list<std::span<const Setting>> parts) {
  std::vector<Setting> all;
  for (std::span<const Setting> part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace

const config::Schema& schema() {
  static const std::vector<Setting> kSettings =
      joined({kCommand, train_task_settings(), train_learning_settings(), train_computing_settings(), kRun,
              queue_settings(), kRecord});
  static const config::Schema kSchema(kSettings);
  return kSchema;
}

}  // namespace stoker::job

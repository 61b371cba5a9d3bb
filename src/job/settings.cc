#include "job/settings.h"

#include <array>
#include <initializer_list>
#include <span>
#include <vector>

#include "job/learning_settings.h"
#include "job/queue_settings.h"
#include "job/train_settings.h"

namespace stoker::job {
namespace {

using config::Setting;
using config::Type;

constexpr std::array kCommand = {
    Setting{.key = "name",
            .unset = "the name of the job file's folder",
            .help = "Name of the runs: letters, digits, '.', '_' and '-', at most 64."},
    Setting{.key = "working_directory",
            .type = Type::path,
            .unset = "the job file's folder",
            .help = "Folder in which the ranks run."},
    Setting{.key = "run",
            .type = Type::words,
            .unset = "`train` is given",
            .help = "Command that every rank executes, split by shell quoting and run without a shell."},
    Setting{.key = "run.shell", .help = "Command line for /bin/sh, in place of `run: COMMAND`."},
};

constexpr std::array kRun = {
    Setting{
        .key = "params.*", .unset = "none", .help = "User-defined value, used elsewhere as ${params.NAME}."},

    Setting{.key = "resources.nodes",
            .type = Type::count,
            .fallback = "1",
            .at_least = 1,
            .at_most = 10000,
            .help = "Number of nodes; 1 outside an allocation."},
    Setting{.key = "resources.ranks_per_node",
            .type = Type::count,
            .fallback = "1",
            .at_least = 1,
            .at_most = 1024,
            .help = "Number of processes started on each node.",
            .note = "RANK, LOCAL_RANK and WORLD_SIZE are derived from it."},
    Setting{.key = "resources.ranks",
            .type = Type::count,
            .unset = "nodes x ranks_per_node",
            .at_least = 1,
            .at_most = 1e6,
            .help = "Number of processes on all nodes together, for nodes with unequal numbers: 7 on 2 nodes "
                    "are 4 and 3, or as the allocation defines."},
    Setting{.key = "resources.cpus_per_rank",
            .type = Type::count,
            .unset = "the available cores, divided evenly",
            .at_least = 1,
            .at_most = 4096,
            .help = "Number of cores each rank may use."},
    Setting{.key = "resources.gpus_per_rank",
            .type = Type::count,
            .fallback = "0",
            .at_least = 0,
            .at_most = 64,
            .help = "GPUs to request with `stoker submit`, times `ranks_per_node` on each node.",
            .note = "Used in the queue only; otherwise the ranks see every GPU of the machine."},
    Setting{.key = "resources.ranks_per_gpu",
            .type = Type::count,
            .fallback = "1",
            .at_least = 1,
            .at_most = 64,
            .help = "Number of ranks that share a GPU; above 1 every rank sees exactly one GPU "
                    "(CUDA_VISIBLE_DEVICES), and this number decides how many GPUs are requested."},
    Setting{.key = "resources.memory_per_node",
            .type = Type::size,
            .unset = "the partition's default",
            .at_least = 1048576,
            .help = "Memory to request with `stoker submit`.",
            .note = "Used in the queue only."},
    Setting{.key = "resources.time",
            .type = Type::duration,
            .unset = "no limit; in the queue the partition's default",
            .at_least = 1,
            .help = "Time limit of the run; in the queue, the job's time limit."},

    Setting{.key = "site",
            .fallback = "auto",
            .help = "Profile of the cluster (`stoker site list`) that a submitted job is checked against: "
                    "`auto` detects the current cluster, `none` skips the check."},
    Setting{.key = "slurm.account",
            .unset = "your default account",
            .help = "Account that a submitted job is charged to."},
    Setting{.key = "slurm.partition",
            .unset = "the cluster's default partition",
            .help = "Partition of a submitted job; separate several with commas."},
    Setting{.key = "slurm.qos", .unset = "your default", .help = "Quality of service of a submitted job."},
    Setting{.key = "slurm.reservation", .unset = "none", .help = "Reservation of a submitted job."},
    Setting{.key = "slurm.extra",
            .type = Type::texts,
            .unset = "none",
            .help = "Additional options for sbatch, one per entry: [--constraint=v100, --exclusive]."},

    Setting{.key = "environment.modules",
            .type = Type::texts,
            .unset = "none",
            .help = "Modules to load with `module load` before the ranks start, locally or on the job's "
                    "first node: [python/3.11, cuda]."},
    Setting{.key = "environment.conda",
            .unset = "none",
            .help = "Conda environment to activate after the modules are loaded, by name or folder."},
    Setting{.key = "environment.venv",
            .type = Type::path,
            .unset = "none",
            .help = "Python virtual environment whose programs are found first, or a requirements file from "
                    "which every node builds an environment on its local disk."},
    Setting{.key = "environment.container",
            .type = Type::path,
            .unset = "none",
            .help = "Charliecloud image to run the ranks in: a folder or a SquashFS file."},
    Setting{.key = "environment.wheelhouse",
            .type = Type::path,
            .unset = "pip's own configuration",
            .help = "Folder of wheels; packages of `venv` are installed only from here."},
    Setting{.key = "environment.variables.*",
            .unset = "none",
            .help = "Environment variable for every rank.",
            .names = config::Names::as_written},

    Setting{.key = "code.snapshot",
            .type = Type::boolean,
            .fallback = "false",
            .help = "Run from a read-only copy of the repository's current files, including changed and new "
                    "ones; relative paths in the command refer to the copy."},
    Setting{.key = "code.untracked_limit",
            .type = Type::size,
            .fallback = "10MB",
            .at_least = 0,
            .help = "Leave files that git does not track out of the copy if they are larger than this."},

    Setting{.key = "data.*.source",
            .type = Type::path,
            .help = "Folder of a packed dataset; the ranks find it in STOKER_DATA_<NAME>."},
    Setting{
        .key = "data.*.split", .unset = "the dataset's only split", .help = "Split of the dataset to use."},

    Setting{.key = "stage.unpack",
            .type = Type::texts,
            .unset = "none",
            .help = "Archives (tar, tar.zst, tar.gz, zip) to unpack on every node's local disk before the "
                    "ranks start.",
            .note = "The ranks find the files in STOKER_STAGE_DIR."},
    Setting{.key = "stage.copy",
            .type = Type::texts,
            .unset = "none",
            .help = "Files and folders to copy to every node's local disk before the ranks start."},
    Setting{.key = "stage.back",
            .type = Type::texts,
            .unset = "none",
            .help = "Files and folders in STOKER_STAGE_DIR to copy to the attempt's folder after the run, "
                    "even if it failed."},
    Setting{
        .key = "stage.outside_links",
        .type = Type::boolean,
        .fallback = "false",
        .help = "Allow symbolic links in archives to point outside the folder that they are unpacked into."},
    Setting{.key = "stage.directory",
            .type = Type::path,
            .unset = "SLURM_TMPDIR, TMPDIR or /tmp of each node",
            .help = "Folder on each node in which the run creates its own folder."},
    Setting{.key = "stage.timeout",
            .type = Type::duration,
            .fallback = "30m",
            .at_least = 1,
            .help = "Time limit for staging before the ranks start."},

    Setting{.key = "checkpoint.directory",
            .type = Type::path,
            .unset = "`checkpoints` in the run folder",
            .help = "Folder in which each run creates a folder with its name; the ranks find it in "
                    "STOKER_CHECKPOINT_DIR."},
    Setting{.key = "checkpoint.local",
            .type = Type::path,
            .unset = "direct writes to shared storage",
            .help = "Folder on each node's local disk that `train` writes checkpoints to first; they are "
                    "copied to `directory` in the background.",
            .note = "A checkpoint counts as saved once it is in `directory`."},
    Setting{.key = "checkpoint.every",
            .type = Type::every,
            .fallback = "1 epoch",
            .choices = "auto|steps|epochs",
            .at_least = 1,
            .help = "How often `train` saves (your own command decides for itself). `auto` chooses by Daly's "
                    "formula from the cost of a checkpoint and `mtbf`."},
    Setting{.key = "checkpoint.mtbf",
            .type = Type::duration,
            .fallback = "1d",
            .at_least = 60,
            .help = "Mean time between failures of the whole job, used by `every: auto`."},
    Setting{.key = "checkpoint.keep_last",
            .type = Type::count,
            .fallback = "3",
            .at_least = 1,
            .at_most = 1e6,
            .help = "Number of most recent checkpoints to keep."},
    Setting{.key = "checkpoint.keep_every",
            .type = Type::duration,
            .fallback = "0s",
            .at_least = 0,
            .help = "Also keep the first checkpoint of each interval of this length: 6h; 0s keeps none."},
    Setting{.key = "checkpoint.keep_best",
            .type = Type::count,
            .fallback = "0",
            .at_least = 0,
            .at_most = 1e6,
            .help = "Number of checkpoints that are best by `metric` to keep as well; `train` then also "
                    "saves after each validation."},
    Setting{
        .key = "checkpoint.metric",
        .type = Type::choice,
        .fallback = "val_top1",
        .choices = "val_top1|val_top5|val_loss",
        .help =
            "Metric for `keep_best`: the lowest value of a loss is best, the highest of any other metric."},
    Setting{.key = "checkpoint.before_end",
            .type = Type::duration,
            .fallback = "2m",
            .at_least = 0,
            .at_most = 86400,
            .help = "How long before the time limit of the run or of its allocation the ranks receive "
                    "SIGUSR1, the request to save and stop; at most a quarter of the limit, 0s for never.",
            .note = "Slurm may be a minute early or late."},

    Setting{.key = "launcher",
            .type = Type::choice,
            .fallback = "srun",
            .choices = "srun|torchrun|single",
            .help = "Within an allocation: srun starts one task per rank on all its nodes, single starts the "
                    "ranks on this node. torchrun: one torchrun per node starts that node's ranks, also "
                    "outside an allocation."},
};

constexpr std::array kRecord = {
    Setting{.key = "record.directory",
            .type = Type::path,
            .fallback = "runs",
            .help = "Folder in which run folders are created; a relative path starts at the current folder."},
    Setting{.key = "record.metrics",
            .type = Type::boolean,
            .fallback = "true",
            .help = "Record the metrics of every step and epoch of `train`."},
    Setting{.key = "record.receipts",
            .type = Type::boolean,
            .fallback = "false",
            .help = "Record which samples each rank used in each step."},
    Setting{.key = "record.trace",
            .type = Type::count,
            .fallback = "0",
            .at_least = 0,
            .at_most = 10000,
            .help = "Number of first steps of each attempt of `train` to trace: phases and collectives of "
                    "each rank, for Perfetto."},
    Setting{.key = "record.sample_every",
            .type = Type::duration,
            .fallback = "1s",
            .at_least = 0.1,
            .at_most = 3600,
            .help = "Interval between samples of the ranks' CPU, memory and I/O."},

    Setting{.key = "timeouts.start",
            .type = Type::duration,
            .fallback = "2m",
            .at_least = 1,
            .help = "Time limit until every rank has started."},
    Setting{.key = "timeouts.stall",
            .type = Type::duration,
            .fallback = "10m",
            .at_least = 1,
            .help = "How long a rank may make no progress: no step and no CPU time."},
    Setting{.key = "timeouts.data",
            .type = Type::duration,
            .fallback = "5m",
            .at_least = 1,
            .help = "How long `train` waits for a batch of data."},
    Setting{.key = "timeouts.stopped",
            .type = Type::duration,
            .fallback = "5s",
            .at_least = 1,
            .help = "How long a rank may be stopped by a signal."},
    Setting{.key = "timeouts.communication",
            .type = Type::duration,
            .fallback = "10m",
            .at_least = 1,
            .help = "Time limit of one collective between the ranks of `train`."},
    Setting{.key = "timeouts.checkpoint",
            .type = Type::duration,
            .fallback = "5m",
            .at_least = 1,
            .help = "How long a checkpoint waits for the other ranks' parts."},
    Setting{.key = "timeouts.grace",
            .type = Type::duration,
            .fallback = "10s",
            .at_least = 0,
            .at_most = 3600,
            .help = "Time between SIGTERM and SIGKILL when a run is stopped."},
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

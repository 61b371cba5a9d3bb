#include "manual/reference.h"

namespace stoker::manual {
namespace {

constexpr ReferenceRow kFiles[] = {
    {"job.yaml", "Job file. `stoker init` writes one, and `stoker check --keys` lists its keys."},
    {"runs/", "Folder with one folder per run: records, logs, metrics and checkpoints (record.directory)."},
    {"~/.config/stoker/sites/NAME.yaml", "Your profiles of clusters. They override the bundled ones."},
    {"/etc/stoker/site.yaml", "Limits that administrators enforce; must belong to root."},
    {"share/stoker/sites/NAME.yaml", "Bundled profiles of clusters, next to the command's bin folder."},
};

constexpr ReferenceRow kCommandVariables[] = {
    {"STOKER_SET_KEY", "Override the job file's key, in upper case: STOKER_SET_TRAIN_EPOCHS=3."},
    {"STOKER_SLURM_CALLS_PER_S", "Queries per second to Slurm's controller; 0: no limit."},
    {"STOKER_SLURM_RELEASE", "Release of Slurm that `stoker check SCRIPT` assumes: 23.11."},
    {"STOKER_LAB_DIR", "Folder of the labs; default: /tmp/stoker-lab-UID."},
    {"STOKER_CACHE", "Folder of the node-local cache; default: stoker-cache-UID on the node-local disk."},
    {"STOKER_BROTLI_LIBRARY", "Path of libbrotlidec, for Parquet files with this compression."},
    {"LC_ALL, LC_MESSAGES, LANG",
     "Language of translated messages, the first one that is set; --lang overrides it."},
    {"NO_COLOR", "If set, the output has no color."},
    {"XDG_CONFIG_HOME", "Folder in place of ~/.config."},
    {"SLURM_CONF", "Configuration file of Slurm; its ClusterName identifies the site."},
    {"SBATCH_ACCOUNT, SBATCH_PARTITION, SBATCH_QOS", "Defaults of sbatch; `stoker check` considers them."},
};

constexpr ReferenceRow kRankVariables[] = {
    {"RANK, WORLD_SIZE", "Global rank from 0, and the number of ranks."},
    {"LOCAL_RANK, LOCAL_WORLD_SIZE", "Rank on its node from 0, and the number of ranks on this node."},
    {"NODE_RANK", "Number of the node, from 0."},
    {"MASTER_ADDR, MASTER_PORT", "Address of rank 0's host, and a port that is reserved for the run."},
    {"OMP_NUM_THREADS", "Cores per rank, unless already set."},
    {"NUMBA_NUM_THREADS, POLARS_MAX_THREADS, RAYON_NUM_THREADS, TF_NUM_INTRAOP_THREADS, JULIA_NUM_THREADS",
     "The same for libraries that ignore OMP_NUM_THREADS."},
    {"CUDA_VISIBLE_DEVICES",
     "GPUs of the ranks of this node, or the one GPU of this rank if resources.ranks_per_gpu is above 1."},
    {"STOKER_GPUS_PER_RANK", "GPUs of each rank, with resources.gpus_per_rank."},
    {"TORCH_FR_DUMP_TEMP_FILE, TORCH_FR_BUFFER_SIZE, TORCH_NCCL_DUMP_ON_TIMEOUT",
     "Torch leaves its last collectives in the attempt if NCCL times out, unless already set."},
    {"PYTHONUNBUFFERED", "1, unless already set."},
    {"GLIBC_TUNABLES", "Transparent huge pages for `train`, unless already set."},
    {"STOKER_RUN_ID, STOKER_RUN_DIR", "Id and folder of the run."},
    {"STOKER_ATTEMPT_DIR, STOKER_JOB", "Folder of this attempt, and its effective job file."},
    {"STOKER_TASK",
     "Row number of an array task that is one process, from 1; under `stoker farm` the name of the task."},
    {"STOKER_PROFILE_TOOL, STOKER_PROFILE_STEPS",
     "Under `stoker profile --tool` on a chosen rank: the tool, and FIRST..LAST if there are steps."},
    {"STOKER_TENSORBOARD_DIR", "Folder of this run for TensorBoard's event files."},
    {"WANDB_RUN_ID, WANDB_RESUME, WANDB_DIR",
     "One run of W&B for each rank over all attempts, in the run folder, unless already set."},
    {"MLFLOW_RUN_CONTEXT", "The run id as a tag of MLflow's new runs, unless already set."},
    {"STOKER_CHECKPOINT_DIR", "Checkpoint folder of this run."},
    {"STOKER_RESUME", "Checkpoint to resume from; empty for a fresh start."},
    {"STOKER_STAGE_DIR", "Folder on the node-local disk with the data of `stage`."},
    {"STOKER_DEADLINE", "End of the time limit in Unix seconds; empty without a limit."},
    {"STOKER_DATA_NAME", "Dataset of data.NAME, in upper case."},
    {"STOKER_STEP_NODES", "Nodes of a trial that shares an allocation with other trials of several nodes."},
    {"STOKER_TRIAL", "Under `stoker sweep run`: the number of the trial."},
    {"STOKER_TRIAL_PARAMS", "Under `stoker sweep run`: its parameters as JSON."},
};

}  // namespace

std::span<const ReferenceRow> reference_files() { return kFiles; }

std::span<const ReferenceRow> command_variables() { return kCommandVariables; }

std::span<const ReferenceRow> rank_variables() { return kRankVariables; }

}  // namespace stoker::manual

"""Functions for notebooks: submit jobs, watch the queue, and see the speed, the iterations and the collectives of a training.
They have the names, arguments and DataFrame columns of the course DLO-JZ, and read the logs of its scripts and the runs of
Stoker. pandas and matplotlib are imported when a function needs them."""

from stoker.notebook_compare import compare
from stoker.notebook_layers import BatchNorm_view
from stoker.notebook_logs import metric_compute_log, search_log
from stoker.notebook_profile import comm_profiler
from stoker.notebook_queue import display_slurm_queue, gpu_jobs_submitter
from stoker.notebook_training import controle_technique, turbo_profiler

__all__ = [
    "BatchNorm_view",
    "comm_profiler",
    "compare",
    "controle_technique",
    "display_slurm_queue",
    "gpu_jobs_submitter",
    "metric_compute_log",
    "search_log",
    "turbo_profiler",
]

// Rules for clusters inside a job: Ray, Dask and Spark, where they start and with how many workers.
#include <algorithm>

#include "script_lint/rule.h"
#include "stoker/text.h"

namespace stoker::script_lint {
namespace {

// "Ray" of "ray start --head"; "" for a program that starts no cluster.
std::string_view cluster_of(const ProgramCall& call) {
  const std::string first = call.words.empty() ? "" : call.words[0];
  if (call.program == "ray") return first == "start" ? "Ray" : "";
  if (call.program == "dask") return first == "scheduler" || first == "worker" ? "Dask" : "";
  if (call.program == "dask-scheduler" || call.program == "dask-worker") return "Dask";
  if (call.program == "start-master.sh" || call.program == "start-all.sh") return "Spark";
  return "";
}

void find_cluster_on_login(const Script& script, FindingReport& report) {
  // Outside of a job the script runs on a login node; jobs have Slurm's variables.
  const bool is_of_job = !script.request.directives.empty() || script.mentions("SLURM_");
  for (const ProgramCall& call : script.calls) {
    const std::string_view cluster = cluster_of(call);
    if (cluster.empty() || is_of_job || call.context.launcher || call.context.is_remote) continue;
    report
        .add(call.span, message("{} starts on the login node, because the script requests no resources "
                                "from Slurm; the staff will kill it",
                                cluster))
        .fix = message(
        "`#SBATCH --nodes=2`, and `srun --ntasks=$SLURM_NNODES --ntasks-per-node=1 PROGRAM` for the workers");
    return;
  }
}

// The role of a command in a cluster.
enum class ClusterRole { none, head, worker };

ClusterRole cluster_role(const ProgramCall& call) {
  const std::string first = call.words.empty() ? "" : call.words[0];
  if (call.program == "ray" && first == "start")
    return call.has("--head") ? ClusterRole::head : ClusterRole::worker;
  if (call.program == "dask-scheduler" || (call.program == "dask" && first == "scheduler"))
    return ClusterRole::head;
  if (call.program == "dask-worker" || (call.program == "dask" && first == "worker"))
    return ClusterRole::worker;
  if (call.program == "start-master.sh") return ClusterRole::head;
  if (call.program == "start-worker.sh" || call.program == "start-slave.sh" ||
      call.program == "start-workers.sh" || call.program == "start-slaves.sh" ||
      call.program == "start-all.sh")
    return ClusterRole::worker;
  return ClusterRole::none;
}

// May run commands on other nodes, in a way that is unknown here.
bool may_reach_others(const ProgramCall& call) {
  return call.context.is_remote || call.program == "ssh" || call.program == "pdsh" ||
         call.program == "clush" || call.program == "bash" || call.program == "sh" ||
         call.program == "source" || call.program == "." || call.program.ends_with(".sh");
}

std::string worker_command(std::string_view cluster) {
  if (cluster == "Ray")
    return "srun --ntasks-per-node=1 --ntasks=$((SLURM_NNODES-1)) -x \"$HEAD\" ray start "
           "--address=\"$HEAD\":6379 --block &";
  if (cluster == "Dask") return "srun --ntasks-per-node=1 dask worker tcp://\"$HEAD\":8786 &";
  return "srun --ntasks-per-node=1 spark-class org.apache.spark.deploy.worker.Worker spark://\"$HEAD\":7077 "
         "&";
}

void find_cluster_on_one_node(const Script& script, FindingReport& report) {
  if (script.request.nodes() < 2) return;
  const ProgramCall* head = nullptr;
  for (const ProgramCall& call : script.calls) {
    const ClusterRole role = cluster_role(call);
    if (role == ClusterRole::head && head == nullptr) head = &call;
    const ProgramCall* launcher = script.launcher_of(call);
    // Through srun, or in a loop over the nodes.
    const bool is_everywhere = role == ClusterRole::worker && (launcher != nullptr || call.context.loops > 0);
    if (is_everywhere || (role == ClusterRole::none && may_reach_others(call))) return;
  }
  if (head == nullptr) return;
  const std::string_view cluster = cluster_of(*head);
  report
      .add(head->span, message("{} starts on the job's first node only; the other {} are idle", cluster,
                               script.request.nodes() - 1))
      .fix = worker_command(cluster);
}

// "srun ... ray start" without --block returns, and Slurm kills Ray at the end of the step.
void find_cluster_step_ends(const Script& script, FindingReport& report) {
  for (const ProgramCall& call : script.calls) {
    const ProgramCall* launcher = script.launcher_of(call);
    if (cluster_role(call) == ClusterRole::none || call.program != "ray" || call.has("--block") ||
        launcher == nullptr || launcher->program != "srun" || call.words.empty())
      continue;
    const auto word = std::find_if(call.typed.begin(), call.typed.end(),
                                   [&](const bash::Word* each) { return script.at(each->span) == "start"; });
    if (word == call.typed.end()) continue;
    report.replace(
        {(*word)->span.end, (*word)->span.end},
        message("ray start returns at once, and Slurm kills Ray at the end of the step, before it is used"),
        " --block");
  }
}

constexpr Rule kClusterRules[] = {
    {"cluster-on-login", Level::time, "Ray, Dask and Spark use all cores, and a login node is shared",
     "#!/bin/bash\nray start --head --port=6379\n",
     "#!/bin/bash\n#SBATCH --nodes=2\nsrun ray start --head --port=6379 --block\n",
     "sites' reports of login nodes", find_cluster_on_login},
    {"cluster-on-one-node", Level::time, "Ray, Dask and Spark use only nodes with a started worker",
     "#!/bin/bash\n#SBATCH --nodes=4 --time=1:00:00\nray start --head --port=6379\npython -u tune.py\n",
     "#!/bin/bash\n#SBATCH --nodes=4 --time=1:00:00\nHEAD=$(hostname)\nray start --head --port=6379\n"
     "srun -n 3 -x \"$HEAD\" ray start --address=\"$HEAD\":6379 --block &\npython -u tune.py\n",
     "Ray's guide to Slurm; akbog/urban_data SparkJob.sh", find_cluster_on_one_node},
    {"cluster-step-ends", Level::time, "Slurm kills all processes of a step when it ends",
     "#!/bin/bash\n#SBATCH --nodes=2 --time=1:00:00\nsrun ray start --head --port=6379 &\npython -u "
     "tune.py\n",
     "#!/bin/bash\n#SBATCH --nodes=2 --time=1:00:00\nsrun ray start --head --port=6379 --block &\n"
     "python -u tune.py\n",
     "Ray's guide to Slurm: \"--block\"", find_cluster_step_ends},
};

}  // namespace

std::span<const Rule> cluster_rules() { return kClusterRules; }

}  // namespace stoker::script_lint

// Rules over clusters inside a job: Ray, Dask and Spark, where they are started and with how many workers.
#include <algorithm>

#include "base/text.h"
#include "explain/script/rule.h"

namespace stoker::explain {
namespace {

// "Ray" of "ray start --head"; "" for a program that keeps no cluster of its own.
std::string_view cluster_of(const Call& call) {
  const std::string first = call.words.empty() ? "" : call.words[0];
  if (call.program == "ray") return first == "start" ? "Ray" : "";
  if (call.program == "dask") return first == "scheduler" || first == "worker" ? "Dask" : "";
  if (call.program == "dask-scheduler" || call.program == "dask-worker") return "Dask";
  if (call.program == "start-master.sh" || call.program == "start-all.sh") return "Spark";
  return "";
}

void find_cluster_on_login(const Script& script, Report& report) {
  // Whoever starts it by hand is on a login node; in a job Slurm's variables are there.
  const bool is_of_job = !script.request.directives.empty() || script.mentions("SLURM_");
  for (const Call& call : script.calls) {
    const std::string_view cluster = cluster_of(call);
    if (cluster.empty() || is_of_job || call.context.launcher || call.context.is_remote) continue;
    report
        .add(call.span,
             report.say("{} is started where this script is, which asks Slurm for nothing: on the login "
                        "node, whose staff end it",
                        cluster))
        .fix =
        report.say("#SBATCH --nodes=2, and srun --ntasks=$SLURM_NNODES --ntasks-per-node=1 for the workers");
    return;
  }
}

// The part of a cluster that a command starts.
enum class Part { none, head, worker };

Part part_of(const Call& call) {
  const std::string first = call.words.empty() ? "" : call.words[0];
  if (call.program == "ray" && first == "start") return call.has("--head") ? Part::head : Part::worker;
  if (call.program == "dask-scheduler" || (call.program == "dask" && first == "scheduler")) return Part::head;
  if (call.program == "dask-worker" || (call.program == "dask" && first == "worker")) return Part::worker;
  if (call.program == "start-master.sh") return Part::head;
  if (call.program == "start-worker.sh" || call.program == "start-slave.sh" ||
      call.program == "start-workers.sh" || call.program == "start-slaves.sh" ||
      call.program == "start-all.sh")
    return Part::worker;
  return Part::none;
}

// Brings a command to nodes in a way that this cannot follow.
bool may_reach_others(const Call& call) {
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

void find_cluster_on_one_node(const Script& script, Report& report) {
  if (script.request.nodes() < 2) return;
  const Call* head = nullptr;
  for (const Call& call : script.calls) {
    const Part part = part_of(call);
    if (part == Part::head && head == nullptr) head = &call;
    const Call* launcher = script.launcher_of(call);
    // Through srun, or in a loop over the nodes.
    const bool is_everywhere = part == Part::worker && (launcher != nullptr || call.context.loops > 0);
    if (is_everywhere || (part == Part::none && may_reach_others(call))) return;
  }
  if (head == nullptr) return;
  const std::string_view cluster = cluster_of(*head);
  report
      .add(head->span, report.say("{} is started on the job's first node only; the other {} are idle",
                                  cluster, script.request.nodes() - 1))
      .fix = worker_command(cluster);
}

// "srun ... ray start" without --block: it returns, and with the step Slurm ends what it has started.
void find_cluster_step_ends(const Script& script, Report& report) {
  for (const Call& call : script.calls) {
    const Call* launcher = script.launcher_of(call);
    if (part_of(call) == Part::none || call.program != "ray" || call.has("--block") || launcher == nullptr ||
        launcher->program != "srun" || call.words.empty())
      continue;
    const auto word = std::find_if(call.typed.begin(), call.typed.end(),
                                   [&](const bash::Word* each) { return script.at(each->span) == "start"; });
    if (word == call.typed.end()) continue;
    report.replace(
        {(*word)->span.end, (*word)->span.end},
        report.say("ray start returns at once, and Slurm ends what a step leaves behind: Ray is gone "
                   "before anybody uses it"),
        " --block");
  }
}

constexpr Rule kClusterRules[] = {
    {"cluster-on-login", Level::time,
     "Ray, Dask and Spark take all cores they find, and a login node is everybody's",
     "#!/bin/bash\nray start --head --port=6379\n",
     "#!/bin/bash\n#SBATCH --nodes=2\nsrun ray start --head --port=6379 --block\n",
     "sites' reports of login nodes", find_cluster_on_login},
    {"cluster-on-one-node", Level::time,
     "Ray, Dask and Spark use the nodes on which a worker was started, and no others",
     "#!/bin/bash\n#SBATCH --nodes=4 --time=1:00:00\nray start --head --port=6379\npython -u tune.py\n",
     "#!/bin/bash\n#SBATCH --nodes=4 --time=1:00:00\nHEAD=$(hostname)\nray start --head --port=6379\n"
     "srun -n 3 -x \"$HEAD\" ray start --address=\"$HEAD\":6379 --block &\npython -u tune.py\n",
     "Ray's guide to Slurm; akbog/urban_data SparkJob.sh", find_cluster_on_one_node},
    {"cluster-step-ends", Level::time, "with the end of a step Slurm ends all that it has started",
     "#!/bin/bash\n#SBATCH --nodes=2 --time=1:00:00\nsrun ray start --head --port=6379 &\npython -u "
     "tune.py\n",
     "#!/bin/bash\n#SBATCH --nodes=2 --time=1:00:00\nsrun ray start --head --port=6379 --block &\n"
     "python -u tune.py\n",
     "Ray's guide to Slurm: \"--block\"", find_cluster_step_ends},
};

}  // namespace

std::span<const Rule> cluster_rules() { return kClusterRules; }

}  // namespace stoker::explain

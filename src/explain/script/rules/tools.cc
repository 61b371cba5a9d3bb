// Rules over the tool that a script is built with: where it is started, whether another one fits better, and
// how long it asks to run against how long it did.
#include <algorithm>

#include "base/text.h"
#include "explain/script/rule.h"
#include "slurm/script/batch_script.h"

namespace stoker::explain {
namespace {

constexpr std::uint64_t kSeveral = 3;
constexpr std::chrono::minutes kStep{15};  // to which a time is rounded up
constexpr std::chrono::hours kLongTime{2};

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

bool is_resumed(const Script& script) {
  return script.mentions("checkpoint") || script.mentions("resume") || script.mentions("restart");
}

// The for loop's work, one after the other or all at once.
void find_loop(const Script& script, Report& report) {
  if (script.request.directives.empty()) return;
  for (const Call& call : script.calls) {
    const bool is_run = is_work(call) && !is_launcher(call.program) && !call.context.is_substituted &&
                        !call.context.is_condition && call.context.function.empty();
    if (!is_run || call.context.repeats < kSeveral || call.context.launcher) continue;
    const bool is_table = call.context.loops > 1;
    report
        .add(
            call.span,
            call.context.is_background
                ? report.say(
                      "{} runs at once on one node: an array runs them on as many nodes as are free, and one "
                      "that fails is run again alone",
                      call.context.repeats)
                : report.say(
                      "{} runs one after the other: an array runs them on as many nodes as are free, and one "
                      "that fails is run again alone",
                      call.context.repeats))
        .fix = is_table ? std::string(report.say(
                              "stoker submit with array: {{over: configs.csv}}, a row for each of them"))
                        : format("#SBATCH --array=1-{}", call.context.repeats);
    return;
  }
}

void find_fitting_tool(const Script& script, Report& report) {
  const Directive* array = script.request.find("--array");
  if (array != nullptr && array->option.value.ends_with("%1") && script.request.array_tasks() > 1 &&
      is_resumed(script)) {
    report
        .add(array->value,
             report.say("{} jobs, each from what the one before has saved: those behind the end of the "
                        "training start for nothing",
                        script.request.array_tasks()))
        .fix = "stoker init --from SCRIPT: chain: {until: done, time_per_link: ...}";
  }
  for (const Call& call : script.calls) {
    const bool is_next = call.program == "sbatch" && (call.has("--dependency") || call.has("-d"));
    if (!is_next || (call.context.loops == 0 && !is_resumed(script))) continue;
    report
        .add(call.span,
             report.say("jobs that wait for each other: when one fails, those behind it stay in the queue"))
        .fix = report.say("chain: {{until: done, time_per_link: ...}}, or after: [another.yaml]");
    return;
  }
  find_loop(script, report);
}

void find_long_time(const Script& script, Report& report) {
  const auto& took = report.place().took;
  const auto time = script.request.time();
  if (!took || !time || *time < kLongTime) return;
  // Half as much again, in whole quarters of an hour.
  const Duration needed = *took + *took / 2;
  const Duration safe = kStep * (needed / kStep + 1);
  if (safe * 2 > *time) return;
  report
      .add(script.request.find("--time")->value,
           report.place().times == 1
               ? report.say("{} asked for, and the one run of this script took {} at most: {} is safe, and "
                            "starts sooner "
                            "in a gap",
                            duration_text(*time), rounded_duration(*took), duration_text(safe))
               : report.say("{} asked for, and {} runs of this script took {} at most: {} is safe, and "
                            "starts sooner in "
                            "a gap",
                            duration_text(*time), report.place().times, rounded_duration(*took),
                            duration_text(safe)))
      .fix =
      report.say("#SBATCH --time={}    (when it would start: stoker submit --check --sbatch=--time={} {})",
                 slurm::slurm_duration(safe), slurm::slurm_duration(safe), script.source->name());
}

constexpr Rule kRules[] = {
    {"cluster-on-login", Level::time,
     "Ray, Dask and Spark take all cores they find, and a login node is everybody's",
     "#!/bin/bash\nray start --head --port=6379\n",
     "#!/bin/bash\n#SBATCH --nodes=2\nray start --head --port=6379\n", "sites' reports of login nodes",
     find_cluster_on_login},
    {"fitting-tool", Level::advice, "arrays, chains and tables of values do what loops in scripts imitate",
     "#!/bin/bash\n#SBATCH --time=2\nfor s in 1 2 3 4; do\n  python -u train.py --seed $s\ndone\n",
     "#!/bin/bash\n#SBATCH --time=2 --array=1-4\npython -u train.py --seed $SLURM_ARRAY_TASK_ID\n",
     "courses' chains of jobs; sbatch(1), --array", find_fitting_tool},
    {"long-time", Level::advice, "a job that asks for less time fits into gaps of the queue", "", "",
     "the runs of the script that stoker submit has recorded", find_long_time},
};

}  // namespace

std::span<const Rule> tool_rules() { return kRules; }

}  // namespace stoker::explain

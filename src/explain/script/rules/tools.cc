// Rules over the tool that a script is built with: whether another one fits better, and how long it asks to
// run against how long it did.
#include <algorithm>

#include "base/text.h"
#include "explain/script/rule.h"
#include "slurm/script/batch_script.h"

namespace stoker::explain {
namespace {

constexpr std::uint64_t kSeveral = 3;
constexpr std::uint64_t kFlood = 20;  // from here on another rule tells it
constexpr std::uint64_t kFewTasks = 10;
constexpr std::uint64_t kManySteps = 20;
constexpr std::chrono::minutes kStep{15};  // to which a time is rounded up
constexpr std::chrono::hours kLongTime{2};

bool is_resumed(const Script& script) {
  return script.mentions("checkpoint") || script.mentions("resume") || script.mentions("restart");
}

// A command of its own, neither in an if nor behind && or ||.
bool is_at_top(const Script& script, const Call& call) {
  for (std::size_t i = 0; i < script.tree.list.items.size(); ++i) {
    const bash::Pipeline& pipeline = script.tree.list.items[i].pipeline;
    if (pipeline.commands.size() != 1 || &pipeline.commands[0] != call.command) continue;
    if (i == 0) return true;
    const bash::Connector before = script.tree.list.items[i - 1].next;
    return before != bash::Connector::and_ && before != bash::Connector::or_;
  }
  return false;
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

// "for lr in 0.1 0.01; do sbatch train.sh $lr; done"
void find_sbatch_loop(const Script& script, Report& report) {
  for (const Call& call : script.calls) {
    const bool waits = call.has("--dependency") || call.has("-d");
    if (call.program != "sbatch" || call.context.loops == 0 || call.context.repeats >= kFlood || waits ||
        call.has("--array") || call.has("-a"))
      continue;
    const bool is_table = call.context.loops > 1;
    report
        .add(
            call.span,
            is_table
                ? report.say("a job for each combination: an array over a table of values is one submission, "
                             "with a limit on how many run at once, and what failed is run again alone; a "
                             "search that learns from its results is Optuna's work")
                : report.say("a job for each value: an array is one submission, with a limit on how many run "
                             "at once, and what failed is run again alone"))
        .fix = is_table || call.context.repeats == 1
                   ? std::string(report.say("stoker submit with array: {{over: values.csv, at_once: 20}}"))
                   : format("sbatch --array=1-{}%{} …", call.context.repeats,
                            std::min<std::uint64_t>(call.context.repeats, kFewTasks));
    return;
  }
}

// Arrays and steps so short that starting them is a good part of the work.
void find_short_tasks(const Script& script, Report& report) {
  const auto time = script.request.time();
  const std::uint64_t tasks = script.request.array_tasks();
  if (tasks >= kFewTasks && tasks < kManyTasks && time && *time <= kShortTask) {
    report
        .add(script.request.find("--array")->value,
             report.say(
                 "{} jobs of {} at most: several of them in one job wait in the queue and start only once",
                 tasks, duration_text(*time)))
        .fix = report.say(
        "xargs -P or GNU parallel over a part of the list in each job; stoker submit packs tasks "
        "under 5 minutes by itself");
  }
  for (const Call& call : script.calls) {
    if (call.program != "srun" || call.context.loops == 0 || call.context.repeats < kManySteps ||
        !call.context.is_background)
      continue;
    report
        .add(call.span,
             report.say("{} job steps: each is a word with Slurm's controller, and it slows down all "
                        "the others",
                        call.context.repeats))
        .fix =
        report.say("srun --multi-prog tasks.conf    (or: one srun, and xargs -P or GNU parallel in it)");
    return;
  }
}

// "sbatch $0", "sbatch train.sh" in train.sh, "scontrol requeue $SLURM_JOB_ID".
bool submits_itself(const Script& script, const Call& call) {
  if (call.words.empty()) return false;
  if (call.program == "scontrol" && call.words[0] == "requeue")
    return call.words.size() > 1 && call.words[1].starts_with("$SLURM_");
  if (call.program != "sbatch") return false;
  const std::string name = Path(script.source->name()).filename().string();
  return std::any_of(call.words.begin(), call.words.end(), [&](const std::string& word) {
    return word == "$0" || word.starts_with("$BASH_SOURCE") || word.starts_with("${BASH_SOURCE") ||
           (!word.starts_with('-') && Path(word).filename().string() == name);
  });
}

void find_submits_itself(const Script& script, Report& report) {
  if (script.request.directives.empty()) return;
  const bool has_traps = script.mentions("trap ");
  for (const Call& call : script.calls) {
    if (!submits_itself(script, call)) continue;
    const bool is_bare = call.program == "sbatch" && !call.context.is_condition &&
                         call.context.function.empty() && !has_traps && script.tree.list.items.size() > 1 &&
                         is_at_top(script, call);
    ScriptFinding& finding = report.add(
        call.span,
        is_bare ? report.say("the job submits itself again whatever happened: one that fails at once does "
                             "so for ever")
                : report.say("a chain by hand: one that fails at once goes on failing until somebody "
                             "looks; a chain of Stoker ends when the run is done, or when two jobs leave "
                             "no newer checkpoint"));
    finding.level = is_bare ? Level::time : Level::advice;
    finding.fix = report.say("stoker submit with chain: {{until: done, time_per_link: ...}}");
    return;
  }
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

constexpr Rule kToolRules[] = {
    {"fitting-tool", Level::advice, "arrays, chains and tables of values do what loops in scripts imitate",
     "#!/bin/bash\n#SBATCH --time=2\nfor s in 1 2 3 4; do\n  python -u train.py --seed $s\ndone\n",
     "#!/bin/bash\n#SBATCH --time=2 --array=1-4\npython -u train.py --seed $SLURM_ARRAY_TASK_ID\n",
     "courses' chains of jobs; sbatch(1), --array", find_fitting_tool},
    {"sbatch-loop", Level::advice, "an array is one submission, where a loop around sbatch makes many jobs",
     "#!/bin/bash\nfor lr in 0.1 0.01 0.001; do\n  sbatch train.sh $lr\ndone\n",
     "#!/bin/bash\nsbatch --array=1-3%3 train.sh\n", "sbatch(1), performance; andrebeu/PM loop_jobsub.cmd",
     find_sbatch_loop},
    {"short-tasks", Level::advice, "jobs of a few minutes spend their time on starting",
     "#!/bin/bash\n#SBATCH --array=1-50 --time=3\n./a $SLURM_ARRAY_TASK_ID\n",
     "#!/bin/bash\n#SBATCH --array=1-5 --time=30\nseq 1 10 | xargs -P 4 -n 1 ./a\n",
     "sites' guides to packing jobs; bwilder0/COVID19-Demography \"minimum of 10 minutes\"",
     find_short_tasks},
    {"submits-itself", Level::time, "a job that submits itself goes on when it fails at once, too",
     "#!/bin/bash\n#SBATCH --time=2\npython -u train.py\nsbatch $0\n",
     "#!/bin/bash\n#SBATCH --time=2\npython -u train.py\n", "courses' chains of jobs; sbatch(1), --requeue",
     find_submits_itself},
    {"long-time", Level::advice, "a job that asks for less time fits into gaps of the queue", "", "",
     "the runs of the script that stoker submit has recorded", find_long_time},
};

}  // namespace

std::span<const Rule> tool_rules() { return kToolRules; }

}  // namespace stoker::explain

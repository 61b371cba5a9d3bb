// Rules for the choice of tool, and for --time against measured run times.
#include <algorithm>

#include "script_lint/inner_command.h"
#include "script_lint/rule.h"
#include "slurm/script/batch_script.h"
#include "stoker/text.h"

namespace stoker::script_lint {
namespace {

constexpr std::uint64_t kSeveral = 3;
constexpr std::uint64_t kFlood = 20;  // a different rule reports larger counts
constexpr std::uint64_t kFewTasks = 10;
constexpr std::uint64_t kManySteps = 20;
constexpr std::chrono::minutes kStep{15};  // times are rounded up to this
constexpr std::chrono::hours kLongTime{2};

bool is_resumed(const Script& script) {
  return script.mentions("checkpoint") || script.mentions("resume") || script.mentions("restart");
}

// A separate command, not in an if and not after && or ||.
bool is_at_top(const Script& script, const ProgramCall& call) {
  for (std::size_t i = 0; i < script.tree.list.items.size(); ++i) {
    const bash::ShellPipeline& pipeline = script.tree.list.items[i].pipeline;
    if (pipeline.commands.size() != 1 || &pipeline.commands[0] != call.command) continue;
    if (i == 0) return true;
    const bash::Connector before = script.tree.list.items[i - 1].next;
    return before != bash::Connector::and_ && before != bash::Connector::or_;
  }
  return false;
}

// Work in a for loop, sequential or concurrent.
void find_loop(const Script& script, FindingReport& report) {
  if (script.request.directives.empty()) return;
  for (const ProgramCall& call : script.calls) {
    const bool is_run = is_work(call) && !is_launcher(call.program) && !call.context.is_substituted &&
                        !call.context.is_condition && call.context.function.empty();
    if (!is_run || call.context.repeats < kSeveral || call.context.launcher) continue;
    const bool is_table = call.context.loops > 1;
    report
        .add(call.span,
             call.context.is_background
                 ? message("{} concurrent runs on one node: an array uses all free nodes and retries a "
                           "failed run alone",
                           call.context.repeats)
                 : message("{} sequential runs: an array uses all free nodes and retries a failed run alone",
                           call.context.repeats))
        .fix = is_table ? message("`stoker submit` with `array: {{over: configs.csv}}`, one row per run")
                        : Message(format("#SBATCH --array=1-{}", call.context.repeats));
    return;
  }
}

void find_fitting_tool(const Script& script, FindingReport& report) {
  const Directive* array = script.request.find("--array");
  if (array != nullptr && array->option.value.ends_with("%1") && script.request.array_tasks() > 1 &&
      is_resumed(script)) {
    report
        .add(array->value, message("{} jobs, each resuming from the previous one: jobs after the end of "
                                   "the training start for nothing",
                                   script.request.array_tasks()))
        .fix = message(
        "`stoker init --from SCRIPT`, then in the job file `chain: {{until: done, time_per_link: 20h}}`");
  }
  for (const ProgramCall& call : script.calls) {
    const bool is_next = call.program == "sbatch" && (call.has("--dependency") || call.has("-d"));
    if (!is_next || (call.context.loops == 0 && !is_resumed(script))) continue;
    report
        .add(call.span,
             message("jobs that depend on each other: if one fails, the later ones stay in the queue"))
        .fix =
        message("in a job file: `chain: {{until: done, time_per_link: 20h}}`, or `after: [FIRST.yaml]`");
    return;
  }
  find_loop(script, report);
}

// "for lr in 0.1 0.01; do sbatch train.sh $lr; done"
void find_sbatch_loop(const Script& script, FindingReport& report) {
  for (const ProgramCall& call : script.calls) {
    const bool waits = call.has("--dependency") || call.has("-d");
    if (call.program != "sbatch" || call.context.loops == 0 || call.context.repeats >= kFlood || waits ||
        call.has("--array") || call.has("-a"))
      continue;
    const bool is_table = call.context.loops > 1;
    report
        .add(call.span, is_table ? message("one job per combination: an array over a table of values is "
                                           "one submission, with a limit on concurrent tasks and retries "
                                           "of failed ones; Optuna does searches that learn from results")
                                 : message("one job per value: an array is one submission, with a limit "
                                           "on concurrent tasks and retries of failed ones"))
        .fix = is_table || call.context.repeats == 1
                   ? message("`stoker submit` with `array: {{over: values.csv, at_once: 20}}`")
                   : Message(format("sbatch --array=1-{}%{} SCRIPT", call.context.repeats,
                                    std::min<std::uint64_t>(call.context.repeats, kFewTasks)));
    return;
  }
}

// Arrays and steps so short that the start dominates.
void find_short_tasks(const Script& script, FindingReport& report) {
  const auto time = script.request.time();
  const std::uint64_t tasks = script.request.array_tasks();
  if (tasks >= kFewTasks && tasks < kManyTasks && time && *time <= kShortTask) {
    report
        .add(script.request.find("--array")->value,
             // several, at least kFewTasks
             message("{} jobs of at most {}: several of them in one job wait and start only once", tasks,
                     duration_text(*time)))
        .fix = message(
        "use `xargs -P` or GNU parallel over a part of the list in each job; `stoker submit` packs tasks "
        "below 5 "
        "minutes");
  }
  for (const ProgramCall& call : script.calls) {
    if (call.program != "srun" || call.context.loops == 0 || call.context.repeats < kManySteps ||
        !call.context.is_background)
      continue;
    report
        .add(call.span,
             message(
                 "{} job steps: each one is a request to Slurm's controller, which slows down for all users",
                 call.context.repeats))
        .fix = message("srun --multi-prog tasks.conf    (or: one srun, and xargs -P or GNU parallel in it)");
    return;
  }
}

// "sbatch $0", "sbatch train.sh" in train.sh, "scontrol requeue $SLURM_JOB_ID".
bool submits_itself(const Script& script, const ProgramCall& call) {
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

void find_submits_itself(const Script& script, FindingReport& report) {
  if (script.request.directives.empty()) return;
  const bool has_traps = script.mentions("trap ");
  for (const ProgramCall& call : script.calls) {
    if (!submits_itself(script, call)) continue;
    const bool is_bare = call.program == "sbatch" && !call.context.is_condition &&
                         call.context.function.empty() && !has_traps && script.tree.list.items.size() > 1 &&
                         is_at_top(script, call);
    ScriptFinding& finding = report.add(
        call.span,
        is_bare
            ? message("the job always submits itself again: if it fails at once, it does so forever")
            : message("a chain by hand: a job that fails at once keeps failing until somebody stops it; a "
                      "Stoker chain ends when the run is done, or when two jobs save no newer checkpoint"));
    finding.level = is_bare ? Level::time : Level::advice;
    finding.fix = message("`stoker submit` with `chain: {{until: done, time_per_link: 20h}}`");
    return;
  }
}

void find_long_time(const Script& script, FindingReport& report) {
  const auto& longest_run = report.context().longest_run;
  const auto time = script.request.time();
  if (!longest_run || !time || *time < kLongTime) return;
  // 50 % more, rounded up to quarters of an hour.
  const Duration needed = *longest_run + *longest_run / 2;
  const Duration safe = kStep * (needed / kStep + 1);
  if (safe * 2 > *time) return;
  report
      .add(script.request.find("--time")->value,
           report.context().run_count == 1
               ? message("{} requested, and the one run of this script took at most {}: {} is safe and "
                         "starts earlier in a gap",
                         duration_text(*time), rounded_duration(*longest_run), duration_text(safe))
               : message("{} requested, and {} runs of this script took at most {}: {} is safe and starts "
                         "earlier in a gap",
                         duration_text(*time), report.context().run_count, rounded_duration(*longest_run),
                         duration_text(safe)))
      .fix = message("#SBATCH --time={}    (predict the start: stoker submit --check --sbatch=--time={} {})",
                     slurm::slurm_duration(safe), slurm::slurm_duration(safe), script.source->name());
}

constexpr Rule kToolRules[] = {
    {"better-tool", Level::advice, "arrays, chains and tables of values replace loops in scripts",
     "#!/bin/bash\n#SBATCH --time=2\nfor s in 1 2 3 4; do\n  python -u train.py --seed $s\ndone\n",
     "#!/bin/bash\n#SBATCH --time=2 --array=1-4\npython -u train.py --seed $SLURM_ARRAY_TASK_ID\n",
     "courses' chains of jobs; sbatch(1), --array", find_fitting_tool},
    {"sbatch-loop", Level::advice, "an array is one submission, a loop around sbatch makes many jobs",
     "#!/bin/bash\nfor lr in 0.1 0.01 0.001; do\n  sbatch train.sh $lr\ndone\n",
     "#!/bin/bash\nsbatch --array=1-3%3 train.sh\n", "sbatch(1), performance; andrebeu/PM loop_jobsub.cmd",
     find_sbatch_loop},
    {"short-tasks", Level::advice, "jobs of a few minutes spend their time on starting",
     "#!/bin/bash\n#SBATCH --array=1-50 --time=3\n./a $SLURM_ARRAY_TASK_ID\n",
     "#!/bin/bash\n#SBATCH --array=1-5 --time=30\nseq 1 10 | xargs -P 4 -n 1 ./a\n",
     "sites' guides to packing jobs; bwilder0/COVID19-Demography \"minimum of 10 minutes\"",
     find_short_tasks},
    {"submits-itself", Level::time, "a job that submits itself continues even if it fails at once",
     "#!/bin/bash\n#SBATCH --time=2\npython -u train.py\nsbatch $0\n",
     "#!/bin/bash\n#SBATCH --time=2\npython -u train.py\n", "courses' chains of jobs; sbatch(1), --requeue",
     find_submits_itself},
    {"long-time", Level::advice, "a job with a shorter --time fits into gaps of the queue", "", "",
     "runs of the script recorded by stoker submit", find_long_time},
};

}  // namespace

std::span<const Rule> tool_rules() { return kToolRules; }

}  // namespace stoker::script_lint

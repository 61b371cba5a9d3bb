// `stoker checkpoint prune RUN|DIR`: docs/commands/checkpoint-prune.md
#include <algorithm>

#include "base/json/json.h"
#include "base/language/counted.h"
#include "checkpoint/retention/retention.h"
#include "cli/checkpoint/directory.h"
#include "cli/commands.h"

namespace stoker::cli {
namespace {

struct Pruning {
  RunChoice choice;
  std::optional<std::int64_t> keep;
  std::optional<Duration> every;
  std::optional<std::int64_t> best;
  std::string metric;
  bool dry_run = false;
};

std::string reason(const checkpoint::PlannedStep& planned) {
  const std::string damage = planned.step.why.empty() ? "" : format(", torn: {}", planned.step.why);
  if (planned.reason == checkpoint::RetentionReason::removed) return "removed" + damage;
  return format("kept: {}{}", to_text(planned.reason), damage);
}

void print(const std::vector<checkpoint::PlannedStep>& plan, bool dry_run, Output& out) {
  const double now = unix_seconds(RealClock().wall());
  std::vector<std::vector<std::string>> rows;
  std::uint64_t bytes = 0;
  std::size_t removed = 0;
  for (const checkpoint::PlannedStep& planned : plan) {
    const auto age = std::chrono::duration_cast<Duration>(Seconds(std::max(0.0, now - planned.step.written)));
    rows.push_back({std::to_string(planned.step.step.value), rounded_duration(age),
                    rounded({planned.step.bytes}), reason(planned)});
    if (planned.reason != checkpoint::RetentionReason::removed) continue;
    ++removed;
    bytes += planned.step.bytes;
  }
  out.table({"STEP", "AGE", "SIZE", "WHAT"}, rows);
  out.line("{} {} of {} checkpoints, {}", dry_run ? "would remove" : "removed", grouped(removed),
           grouped(plan.size()), rounded({bytes}));
}

std::string to_json(const Path& directory, const std::vector<checkpoint::PlannedStep>& plan, bool dry_run) {
  nlohmann::ordered_json steps = nlohmann::ordered_json::array();
  for (const checkpoint::PlannedStep& planned : plan) {
    steps.push_back({{"step", planned.step.step.value},
                     {"folder", planned.step.folder.string()},
                     {"bytes", planned.step.bytes},
                     {"state", to_text(planned.step.state)},
                     {"reason", to_text(planned.reason)}});
  }
  const nlohmann::ordered_json json = {
      {"directory", directory.string()}, {"dry_run", dry_run}, {"steps", std::move(steps)}};
  return json_text(json);
}

Status prune(const Pruning& pruning, Output& out) {
  STOKER_ASSIGN_OR_RETURN(directory, find_checkpoint_directory(pruning.choice));
  install_stop_signals();
  const checkpoint::RetentionPolicy rule{.keep_last = static_cast<int>(*pruning.keep),
                                         .keep_every = pruning.every.value_or(Duration::zero()),
                                         .keep_best = static_cast<int>(pruning.best.value_or(0)),
                                         .metric = pruning.metric};
  auto progress = out.progress("reading");
  STOKER_ASSIGN_OR_RETURN(plan,
                          checkpoint::plan_pruning(directory, rule, checkpoint::Depth::bytes, *progress));
  progress.reset();
  if (plan.empty()) return not_found("{}: no checkpoint", printable(directory.string()));
  if (std::ranges::find(plan, checkpoint::RetentionReason::newest, &checkpoint::PlannedStep::reason) ==
      plan.end()) {
    return invalid("{}: no intact checkpoint, so nothing is removed", printable(directory.string()))
        .cure("stoker checkpoint verify {}", shell_quote(directory.string()));
  }
  for (const checkpoint::PlannedStep& planned : plan) {
    if (pruning.dry_run || planned.reason != checkpoint::RetentionReason::removed) continue;
    if (stop_requested())
      return cancelled("checkpoint prune: interrupted; the remaining checkpoints are kept");
    STOKER_RETURN_IF_ERROR(checkpoint::remove_step(planned.step.folder));
  }
  print(plan, pruning.dry_run, out);
  if (!pruning.dry_run) {
    const auto leftovers = checkpoint::remove_abandoned(directory, RealClock().wall());
    if (!leftovers.empty())
      out.line("removed {} of ended saves", counted(leftovers.size(), "leftover folder"));
  }
  out.json(to_json(directory, plan, pruning.dry_run));
  return {};
}

}  // namespace

int checkpoint_prune(std::span<const std::string> words, Output& out) {
  Pruning pruning;
  Arguments arguments("checkpoint prune", "Remove old checkpoints of a run or directory.");
  arguments.positional("RUN|DIR", &pruning.choice.run,
                       "Run (id, prefix, folder, 'last') or checkpoint directory");
  arguments.option("--keep", &pruning.keep, "N", "Keep the N newest intact checkpoints; at least 1");
  arguments.option("--every", &pruning.every, "TIME", "Also keep one checkpoint per interval: 6h");
  arguments.option("--best", &pruning.best, "N", "Also keep the N best by --metric");
  arguments.option("--metric", &pruning.metric, "NAME",
                   "Rank by this metric: val_top1; for a loss, lower is better");
  arguments.flag("--dry-run", &pruning.dry_run, "show what would be removed");
  arguments.option("--runs", &pruning.choice.runs, "DIR",
                   "Folder with the runs (the job's record.directory)");
  arguments.example("stoker checkpoint prune last --keep 3 --every 6h --dry-run");
  if (const auto code = arguments.parse(words, out)) return *code;
  if (!pruning.keep) return out.fail(invalid("checkpoint prune: --keep is required").cure("--keep 3"));
  if (*pruning.keep < 1 || *pruning.keep > 1'000'000)
    return out.fail(invalid("checkpoint prune: --keep: {} is not between 1 and 1000000", *pruning.keep));
  if (pruning.every && *pruning.every < std::chrono::seconds(1))
    return out.fail(invalid("checkpoint prune: --every: must be at least 1s"));
  if (pruning.best.has_value() == pruning.metric.empty())
    return out.fail(invalid("checkpoint prune: --best and --metric: set both or neither")
                        .cure("--best 2 --metric val_top1"));
  if (pruning.best && (*pruning.best < 1 || *pruning.best > 1'000'000))
    return out.fail(invalid("checkpoint prune: --best: {} is not between 1 and 1000000", *pruning.best));
  const Status status = prune(pruning, out);
  return status.ok() ? exit_code::kOk : out.fail(status);
}

}  // namespace stoker::cli

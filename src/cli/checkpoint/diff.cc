// `stoker checkpoint diff FIRST SECOND`: docs/commands/checkpoint-diff.md
#include <array>

#include "base/file.h"
#include "checkpoint/diff/diff_text.h"
#include "cli/checkpoint/directory.h"
#include "cli/checkpoint/foreign.h"
#include "cli/commands.h"

namespace stoker::cli {
namespace {

using checkpoint::DiffLabels;

// The labels of the two columns: as requested, else the first difference of steps and runs.
Result<DiffLabels> choose_labels(const std::string& asked, const checkpoint::StepDiff& diff) {
  if (asked.empty()) return checkpoint::default_labels(diff);
  const auto names = split(asked, ',');
  if (names.size() != 2 || trim(names[0]).empty() || trim(names[1]).empty())
    return invalid("checkpoint diff: --labels: '{}' is not two names separated by a comma", printable(asked));
  return DiffLabels{printable(trim(names[0])), printable(trim(names[1]))};
}

// The step, converted to `pending` if it is of a different tool.
Result<Path> step_of(const std::string& named, const std::string& runs, const Path& pending, Output& out) {
  if (!path_exists(named) || !(is_pickled(named) || is_foreign(named)))
    return find_step({.run = named, .runs = runs});
  STOKER_ASSIGN_OR_RETURN(converted, import_foreign(named, pending, out));
  return converted.tensors > 0 ? Result<Path>(pending)
                               : invalid("checkpoint diff: {}: no tensors", printable(named));
}

Result<checkpoint::StepDiff> compare(const std::array<std::string, 2>& named, const std::string& runs,
                                     const checkpoint::StepDiffOptions& options, Output& out) {
  install_stop_signals();
  const TempDirectory converted;
  const std::array<Path, 2> pending = {converted / "first/step-0", converted / "second/step-0"};
  STOKER_ASSIGN_OR_RETURN(first, step_of(named[0], runs, pending[0], out));
  STOKER_ASSIGN_OR_RETURN(second, step_of(named[1], runs, pending[1], out));
  const auto progress = out.progress("comparing");
  STOKER_ASSIGN_OR_RETURN(diff, checkpoint::diff_steps(first, second, options, *progress));
  if (first == pending[0]) diff.first.run = named[0];
  if (second == pending[1]) diff.second.run = named[1];
  return diff;
}

}  // namespace

int checkpoint_diff(std::span<const std::string> words, Output& out) {
  constexpr const char* kStep =
      "Step folder; run or checkpoint directory (its newest intact step); .safetensors or .pt file";
  std::array<std::string, 2> named;
  std::string runs = "runs";
  std::string label_text;
  std::int64_t most = 20;
  checkpoint::StepDiffOptions options;
  Arguments arguments("checkpoint diff", "Compare two checkpoints tensor by tensor.");
  arguments.positional("FIRST", &named[0], kStep);
  arguments.positional("SECOND", &named[1], kStep);
  arguments.flag("--optimizer", &options.with_optimizer, "Also compare the optimizer state");
  arguments.option("--most", &most, "N", "Show this many rows, the largest changes first [20]");
  arguments.option("--labels", &label_text, "A,B", "Name the two checkpoints [steps, or runs]");
  arguments.option("--runs", &runs, "DIR", "Folder with the runs (the job's record.directory)");
  arguments.example("stoker checkpoint diff runs/a/checkpoints/step-100 runs/a/checkpoints/step-200");
  if (const auto code = arguments.parse(words, out)) return *code;
  if (most < 0) return out.fail(invalid("checkpoint diff: --most: {} is negative", most));
  const auto diff = compare(named, runs, options, out);
  if (!diff.ok()) return out.fail(diff.error());
  const auto labels = choose_labels(label_text, *diff);
  if (!labels.ok()) return out.fail(labels.error());
  if (diff->is_same()) {
    out.line("{} and {} are identical", labels->first, labels->second);
  } else {
    out.raw(checkpoint::diff_text(*diff, *labels, static_cast<std::size_t>(most)));
  }
  out.json(checkpoint::diff_json(*diff, *labels));
  return diff->is_same() ? exit_code::kOk : exit_code::kFailed;
}

}  // namespace stoker::cli

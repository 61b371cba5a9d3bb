// `stoker checkpoint diff FIRST SECOND`: docs/commands/checkpoint-diff.md
#include <algorithm>
#include <cmath>

#include "base/json/json.h"
#include "base/language/counted.h"
#include "checkpoint/diff/step_diff.h"
#include "cli/checkpoint/directory.h"
#include "cli/commands.h"

namespace stoker::cli {
namespace {

struct DiffLabels {
  std::string first;
  std::string second;
};

// The labels of the two columns: as requested, else the first difference of steps and runs.
Result<DiffLabels> choose_labels(const std::string& asked, const checkpoint::StepDiff& diff) {
  if (!asked.empty()) {
    const auto names = split(asked, ',');
    if (names.size() != 2 || trim(names[0]).empty() || trim(names[1]).empty())
      return invalid("checkpoint diff: --labels: '{}' is not two names separated by a comma",
                     printable(asked));
    return DiffLabels{printable(trim(names[0])), printable(trim(names[1]))};
  }
  const std::string first = format("step {}", diff.first.step);
  const std::string second = format("step {}", diff.second.step);
  if (first != second) return DiffLabels{first, second};
  if (diff.first.run != diff.second.run)
    return DiffLabels{printable(diff.first.run), printable(diff.second.run)};
  return DiffLabels{"first", "second"};
}

std::string shape_text(const Shape& shape) {
  std::vector<std::string> sizes;
  for (const std::int64_t size : shape) sizes.push_back(std::to_string(size));
  return sizes.empty() ? "scalar" : join(sizes, "x");
}

std::string number_text(double number) { return format("{:.4g}", number); }

std::string change_text(const checkpoint::TensorDiff& tensor) {
  using checkpoint::TensorChange;
  if (tensor.change == TensorChange::different_form) {
    return format("{} {} → {} {}", to_text(tensor.first.dtype), shape_text(tensor.first.shape),
                  to_text(tensor.second.dtype), shape_text(tensor.second.shape));
  }
  if (tensor.change != TensorChange::changed) return std::string(to_text(tensor.change));
  if (!std::isfinite(tensor.relative())) return "was zero";
  if (tensor.relative() >= 10) return format("{:.3g} x", tensor.relative());
  return format("{:.3g} %", 100 * tensor.relative());
}

// Unmatched tensors come first, then the largest changes.
std::vector<const checkpoint::TensorDiff*> most_changed(const checkpoint::StepDiff& diff) {
  std::vector<const checkpoint::TensorDiff*> changed;
  for (const checkpoint::TensorDiff& tensor : diff.tensors)
    if (tensor.change != checkpoint::TensorChange::same) changed.push_back(&tensor);
  std::ranges::stable_sort(changed, [](const auto* one, const auto* other) {
    const bool is_one_unmatched = one->change != checkpoint::TensorChange::changed;
    const bool is_other_unmatched = other->change != checkpoint::TensorChange::changed;
    if (is_one_unmatched != is_other_unmatched) return is_one_unmatched;
    return one->relative() > other->relative();
  });
  return changed;
}

void print_values(std::string_view what, const std::vector<checkpoint::ValueDiff>& values, Output& out) {
  constexpr std::size_t kMax = 40;
  const auto shortened = [](const std::string& value) {
    if (value.empty()) return std::string("not set");
    return printable(value.size() > kMax ? value.substr(0, kMax) + "..." : value);
  };
  for (const checkpoint::ValueDiff& value : values)
    out.line("{} {}: {} → {}", what, printable(value.name), shortened(value.first), shortened(value.second));
}

void print_tensors(const checkpoint::StepDiff& diff, const DiffLabels& labels, std::size_t most,
                   Output& out) {
  const auto changed = most_changed(diff);
  std::vector<std::vector<std::string>> rows;
  for (const auto* tensor : std::span(changed).first(std::min(most, changed.size()))) {
    const bool is_compared = tensor->change == checkpoint::TensorChange::changed;
    const checkpoint::TensorInfo& info = tensor->first.name.empty() ? tensor->second : tensor->first;
    rows.push_back({printable(tensor->name), shape_text(info.shape),
                    is_compared ? number_text(tensor->first_norm) : "",
                    is_compared ? number_text(tensor->second_norm) : "", change_text(*tensor),
                    is_compared ? number_text(tensor->largest) : ""});
    if (tensor->not_finite > 0) rows.back().back() += format("  {} not finite", grouped(tensor->not_finite));
  }
  if (!rows.empty())
    out.table({"TENSOR", "SHAPE", "|" + labels.first + "|", "|" + labels.second + "|", "CHANGE", "LARGEST"},
              rows);
  if (rows.size() < changed.size()) out.line("and {} more (--most)", grouped(changed.size() - rows.size()));
}

void print_batch_norms(const checkpoint::StepDiff& diff, const DiffLabels& labels, Output& out) {
  if (diff.batch_norms.empty()) return;
  std::vector<std::vector<std::string>> rows;
  for (const checkpoint::BatchNormDiff& norm : diff.batch_norms) {
    rows.push_back({printable(norm.layer), number_text(norm.first_mean), number_text(norm.second_mean),
                    number_text(norm.first_variance), number_text(norm.second_variance)});
  }
  out.line("");
  out.table({"BATCH NORM", "MEAN " + labels.first, "MEAN " + labels.second, "VARIANCE " + labels.first,
             "VARIANCE " + labels.second},
            rows);
}

void print(const checkpoint::StepDiff& diff, const DiffLabels& labels, std::size_t most, Output& out) {
  using checkpoint::TensorChange;
  const auto described = [](const checkpoint::StepManifest& manifest, const std::string& label) {
    const std::string step = format("step {}", manifest.step);
    return format("{}{} of {}", label == step ? "" : label + ": ", step, printable(manifest.run));
  };
  out.line("{} → {}", described(diff.first, labels.first), described(diff.second, labels.second));
  print_values("state", diff.state, out);
  print_values("hyper-parameter", diff.hyper_parameters, out);
  print_tensors(diff, labels, most, out);
  print_batch_norms(diff, labels, out);
  const std::uint64_t same = diff.count(TensorChange::same);
  out.line("{}: {} changed, {} the same, {} unmatched", counted(diff.tensors.size(), "tensor"),
           grouped(diff.count(TensorChange::changed)), grouped(same),
           grouped(diff.tensors.size() - same - diff.count(TensorChange::changed)));
}

nlohmann::ordered_json step_json(const checkpoint::StepManifest& manifest, const std::string& label) {
  return {{"label", label}, {"run", manifest.run}, {"step", manifest.step.value}, {"save", manifest.save}};
}

nlohmann::ordered_json values_json(const std::vector<checkpoint::ValueDiff>& values) {
  const auto parsed = [](const std::string& text) {
    return text.empty() ? nlohmann::ordered_json() : parse_json<nlohmann::ordered_json>(text);
  };
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const auto& value : values)
    json.push_back({{"name", value.name}, {"first", parsed(value.first)}, {"second", parsed(value.second)}});
  return json;
}

nlohmann::ordered_json tensor_json(const checkpoint::TensorDiff& tensor) {
  const auto form = [](const checkpoint::TensorInfo& info) -> nlohmann::ordered_json {
    if (info.name.empty()) return nullptr;
    return {{"dtype", to_text(info.dtype)}, {"shape", info.shape}};
  };
  nlohmann::ordered_json json = {{"name", tensor.name},
                                 {"part", to_text(tensor.part)},
                                 {"change", to_text(tensor.change)},
                                 {"first", form(tensor.first)},
                                 {"second", form(tensor.second)}};
  if (tensor.change != checkpoint::TensorChange::changed && tensor.change != checkpoint::TensorChange::same)
    return json;
  json["first_norm"] = tensor.first_norm;
  json["second_norm"] = tensor.second_norm;
  json["distance"] = tensor.distance;
  json["largest"] = tensor.largest;
  json["not_finite"] = tensor.not_finite;
  return json;
}

std::string to_json(const checkpoint::StepDiff& diff, const DiffLabels& labels) {
  nlohmann::ordered_json tensors = nlohmann::ordered_json::array();
  for (const checkpoint::TensorDiff& tensor : diff.tensors) tensors.push_back(tensor_json(tensor));
  nlohmann::ordered_json norms = nlohmann::ordered_json::array();
  for (const checkpoint::BatchNormDiff& norm : diff.batch_norms) {
    norms.push_back({{"layer", norm.layer},
                     {"first", {{"mean", norm.first_mean}, {"variance", norm.first_variance}}},
                     {"second", {{"mean", norm.second_mean}, {"variance", norm.second_variance}}}});
  }
  const nlohmann::ordered_json json = {{"first", step_json(diff.first, labels.first)},
                                       {"second", step_json(diff.second, labels.second)},
                                       {"same", diff.is_same()},
                                       {"state", values_json(diff.state)},
                                       {"hyper_parameters", values_json(diff.hyper_parameters)},
                                       {"tensors", std::move(tensors)},
                                       {"batch_norms", std::move(norms)}};
  return json_text(json);
}

Result<checkpoint::StepDiff> compare(const std::array<std::string, 2>& named, const std::string& runs,
                                     const checkpoint::StepDiffOptions& options, Output& out) {
  STOKER_ASSIGN_OR_RETURN(first, find_step({.run = named[0], .runs = runs}));
  STOKER_ASSIGN_OR_RETURN(second, find_step({.run = named[1], .runs = runs}));
  install_stop_signals();
  const auto progress = out.progress("comparing");
  return checkpoint::diff_steps(first, second, options, *progress);
}

}  // namespace

int checkpoint_diff(std::span<const std::string> words, Output& out) {
  constexpr const char* kStep = "Step folder, or run or checkpoint directory (its newest intact step)";
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
    print(*diff, *labels, static_cast<std::size_t>(most), out);
  }
  out.json(to_json(*diff, *labels));
  return diff->is_same() ? exit_code::kOk : exit_code::kFailed;
}

}  // namespace stoker::cli

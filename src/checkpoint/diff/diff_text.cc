#include "checkpoint/diff/diff_text.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "base/json/json.h"
#include "base/language/counted.h"
#include "base/table.h"

namespace stoker::checkpoint {
namespace {

std::string shape_text(const Shape& shape) {
  std::vector<std::string> sizes;
  for (const std::int64_t size : shape) sizes.push_back(std::to_string(size));
  return sizes.empty() ? "scalar" : join(sizes, "x");
}

std::string number_text(double number) { return format("{:.4g}", number); }

std::string change_text(const TensorDiff& tensor) {
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
std::vector<const TensorDiff*> most_changed(const StepDiff& diff) {
  std::vector<const TensorDiff*> changed;
  for (const TensorDiff& tensor : diff.tensors)
    if (tensor.change != TensorChange::same) changed.push_back(&tensor);
  std::ranges::stable_sort(changed, [](const auto* one, const auto* other) {
    const bool is_one_unmatched = one->change != TensorChange::changed;
    const bool is_other_unmatched = other->change != TensorChange::changed;
    if (is_one_unmatched != is_other_unmatched) return is_one_unmatched;
    return one->relative() > other->relative();
  });
  return changed;
}

std::string values_text(std::string_view what, const std::vector<ValueDiff>& values) {
  constexpr std::size_t kMax = 40;
  const auto shortened = [](const std::string& value) {
    if (value.empty()) return std::string("not set");
    return printable(value.size() > kMax ? value.substr(0, kMax) + "..." : value);
  };
  std::string text;
  for (const ValueDiff& value : values)
    text += format("{} {}: {} → {}\n", what, printable(value.name), shortened(value.first),
                   shortened(value.second));
  return text;
}

std::string tensors_text(const StepDiff& diff, const DiffLabels& labels, std::size_t most) {
  const auto changed = most_changed(diff);
  std::vector<std::vector<std::string>> rows;
  for (const auto* tensor : std::span(changed).first(std::min(most, changed.size()))) {
    const bool is_compared = tensor->change == TensorChange::changed;
    const TensorInfo& info = tensor->first.name.empty() ? tensor->second : tensor->first;
    rows.push_back({printable(tensor->name), shape_text(info.shape),
                    is_compared ? number_text(tensor->first_norm) : "",
                    is_compared ? number_text(tensor->second_norm) : "", change_text(*tensor),
                    is_compared ? number_text(tensor->largest) : ""});
    if (tensor->not_finite > 0) rows.back().back() += format("  {} not finite", grouped(tensor->not_finite));
  }
  std::string text;
  if (!rows.empty())
    text = table_text(
        {"TENSOR", "SHAPE", "|" + labels.first + "|", "|" + labels.second + "|", "CHANGE", "LARGEST"}, rows);
  if (rows.size() < changed.size())
    text += format("and {} more (--most)\n", grouped(changed.size() - rows.size()));
  return text;
}

std::string batch_norms_text(const StepDiff& diff, const DiffLabels& labels) {
  if (diff.batch_norms.empty()) return "";
  std::vector<std::vector<std::string>> rows;
  for (const BatchNormDiff& norm : diff.batch_norms) {
    rows.push_back({printable(norm.layer), number_text(norm.first_mean), number_text(norm.second_mean),
                    number_text(norm.first_variance), number_text(norm.second_variance)});
  }
  return "\n" + table_text({"BATCH NORM", "MEAN " + labels.first, "MEAN " + labels.second,
                            "VARIANCE " + labels.first, "VARIANCE " + labels.second},
                           rows);
}

nlohmann::ordered_json step_json(const StepManifest& manifest, const std::string& label) {
  return {{"label", label}, {"run", manifest.run}, {"step", manifest.step.value}, {"save", manifest.save}};
}

nlohmann::ordered_json values_json(const std::vector<ValueDiff>& values) {
  const auto parsed = [](const std::string& text) {
    return text.empty() ? nlohmann::ordered_json() : parse_json<nlohmann::ordered_json>(text);
  };
  nlohmann::ordered_json json = nlohmann::ordered_json::array();
  for (const auto& value : values)
    json.push_back({{"name", value.name}, {"first", parsed(value.first)}, {"second", parsed(value.second)}});
  return json;
}

nlohmann::ordered_json tensor_json(const TensorDiff& tensor) {
  const auto form = [](const TensorInfo& info) -> nlohmann::ordered_json {
    if (info.name.empty()) return nullptr;
    return {{"dtype", to_text(info.dtype)}, {"shape", info.shape}};
  };
  nlohmann::ordered_json json = {{"name", tensor.name},
                                 {"part", to_text(tensor.part)},
                                 {"change", to_text(tensor.change)},
                                 {"first", form(tensor.first)},
                                 {"second", form(tensor.second)}};
  if (tensor.change != TensorChange::changed && tensor.change != TensorChange::same) return json;
  json["first_norm"] = tensor.first_norm;
  json["second_norm"] = tensor.second_norm;
  json["distance"] = tensor.distance;
  json["largest"] = tensor.largest;
  json["not_finite"] = tensor.not_finite;
  return json;
}

}  // namespace

DiffLabels default_labels(const StepDiff& diff) {
  const std::string first = format("step {}", diff.first.step);
  const std::string second = format("step {}", diff.second.step);
  if (first != second) return {first, second};
  if (diff.first.run != diff.second.run) return {printable(diff.first.run), printable(diff.second.run)};
  return {"first", "second"};
}

std::string diff_text(const StepDiff& diff, const DiffLabels& labels, std::size_t most) {
  const auto described = [](const StepManifest& manifest, const std::string& label) {
    const std::string step = format("step {}", manifest.step);
    return format("{}{} of {}", label == step ? "" : label + ": ", step, printable(manifest.run));
  };
  std::string text =
      format("{} → {}\n", described(diff.first, labels.first), described(diff.second, labels.second));
  text += values_text("state", diff.state);
  text += values_text("hyper-parameter", diff.hyper_parameters);
  text += tensors_text(diff, labels, most);
  text += batch_norms_text(diff, labels);
  const std::uint64_t same = diff.count(TensorChange::same);
  return text + format("{}: {} changed, {} the same, {} unmatched\n", counted(diff.tensors.size(), "tensor"),
                       grouped(diff.count(TensorChange::changed)), grouped(same),
                       grouped(diff.tensors.size() - same - diff.count(TensorChange::changed)));
}

std::string diff_json(const StepDiff& diff, const DiffLabels& labels) {
  nlohmann::ordered_json tensors = nlohmann::ordered_json::array();
  for (const TensorDiff& tensor : diff.tensors) tensors.push_back(tensor_json(tensor));
  nlohmann::ordered_json norms = nlohmann::ordered_json::array();
  for (const BatchNormDiff& norm : diff.batch_norms) {
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

}  // namespace stoker::checkpoint

#include "checkpoint/diff/step_diff.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "archive/safetensors.h"
#include "base/json/json.h"
#include "checkpoint/diff/numbers.h"
#include "checkpoint/read/step_reader.h"
#include "checkpoint/read/tensor_reader.h"

namespace stoker::checkpoint {

namespace {

constexpr std::size_t kChunkElements = 128 << 10;

using Tensors = std::map<std::string_view, const TensorInfo*>;

Tensors by_name(const std::vector<TensorInfo>& list) {
  Tensors tensors;
  for (const TensorInfo& tensor : list) tensors.emplace(tensor.name, &tensor);
  return tensors;
}

std::vector<ValueDiff> diff_values(const StateValues& first, const StateValues& second) {
  const auto one = parse_json<nlohmann::json>(first.to_json());
  const auto other = parse_json<nlohmann::json>(second.to_json());
  std::vector<ValueDiff> diffs;
  for (const auto& [name, value] : one.items()) {
    if (!other.contains(name)) {
      diffs.push_back({name, json_text(value), ""});
    } else if (other[name] != value) {
      diffs.push_back({name, json_text(value), json_text(other[name])});
    }
  }
  for (const auto& [name, value] : other.items())
    if (!one.contains(name)) diffs.push_back({name, "", json_text(value)});
  return diffs;
}

Status stopped() { return cancelled("checkpoint diff: stopped"); }

// A verified step, open for reading.
struct OpenStep {
  StepManifest manifest;
  TensorReader reader;
};

Result<OpenStep> open_step(const Path& folder, PartFilter parts, Progress& progress) {
  STOKER_ASSIGN_OR_RETURN(manifest, read_step_manifest(folder));
  const std::vector<StepDamage> damages = verify_files(folder, manifest, parts, progress);
  if (progress.stop_requested()) return stopped();
  if (!damages.empty()) return damage_error(folder, damages);
  STOKER_ASSIGN_OR_RETURN(reader, TensorReader::open(folder, manifest));
  return OpenStep{std::move(manifest), std::move(reader)};
}

// Sums for the norms of a TensorDiff.
struct Sums {
  double first = 0;
  double second = 0;
  double distance = 0;
  double largest = 0;
  std::uint64_t not_finite = 0;

  void add(std::span<const double> one, std::span<const double> other) {
    for (std::size_t i = 0; i < one.size(); ++i) {
      if (!std::isfinite(one[i]) || !std::isfinite(other[i])) {
        ++not_finite;
        continue;
      }
      const double difference = other[i] - one[i];
      first += one[i] * one[i];
      second += other[i] * other[i];
      distance += difference * difference;
      largest = std::max(largest, std::abs(difference));
    }
  }
};

class StepComparison {
 public:
  StepComparison(const OpenStep& first, const OpenStep& second, Progress& progress)
      : first_(first), second_(second), progress_(progress) {}

  Status compare(StepPart part, StepDiff& diff) {
    const Tensors ones = by_name(first_.manifest.tensors_of(part));
    const Tensors others = by_name(second_.manifest.tensors_of(part));
    for (const auto& [name, tensor] : ones) {
      TensorDiff entry;
      entry.part = part;
      entry.name = name;
      entry.first = *tensor;
      if (const auto other = others.find(name); other != others.end()) {
        entry.second = *other->second;
        STOKER_RETURN_IF_ERROR(compare_numbers(entry));
      } else {
        entry.change = TensorChange::only_in_first;
      }
      diff.tensors.push_back(std::move(entry));
    }
    for (const auto& [name, tensor] : others) {
      if (ones.contains(name)) continue;
      TensorDiff entry;
      entry.part = part;
      entry.name = name;
      entry.change = TensorChange::only_in_second;
      entry.second = *tensor;
      diff.tensors.push_back(std::move(entry));
    }
    return {};
  }

  // Mean of a tensor's elements.
  static Result<double> mean_of(const OpenStep& step, const TensorInfo& tensor) {
    const auto count = static_cast<std::uint64_t>(element_count(tensor.shape));
    std::vector<std::byte> bytes(count * size_of(tensor.dtype));
    std::vector<double> numbers(count);
    STOKER_RETURN_IF_ERROR(step.reader.read(StepPart::model, tensor.name, 0, bytes));
    to_doubles(tensor.dtype, bytes, numbers);
    double sum = 0;
    for (const double number : numbers) sum += number;
    return count == 0 ? 0 : sum / static_cast<double>(count);
  }

 private:
  Status compare_numbers(TensorDiff& entry) {
    if (entry.first.dtype != entry.second.dtype || entry.first.shape != entry.second.shape) {
      entry.change = TensorChange::different_form;
      return {};
    }
    const DType dtype = entry.first.dtype;
    const auto total = static_cast<std::uint64_t>(element_count(entry.first.shape));
    bool is_same = true;
    Sums sums;
    for (std::uint64_t at = 0; at < total;) {
      if (progress_.stop_requested()) return stopped();
      const std::size_t count = std::min<std::uint64_t>(kChunkElements, total - at);
      const std::size_t bytes = count * size_of(dtype);
      const std::span<std::byte> one = std::span(first_bytes_).first(bytes);
      const std::span<std::byte> other = std::span(second_bytes_).first(bytes);
      STOKER_RETURN_IF_ERROR(first_.reader.read(entry.part, entry.name, at * size_of(dtype), one));
      STOKER_RETURN_IF_ERROR(second_.reader.read(entry.part, entry.name, at * size_of(dtype), other));
      is_same = is_same && std::memcmp(one.data(), other.data(), bytes) == 0;
      to_doubles(dtype, one, std::span(first_numbers_).first(count));
      to_doubles(dtype, other, std::span(second_numbers_).first(count));
      sums.add(std::span(first_numbers_).first(count), std::span(second_numbers_).first(count));
      at += count;
      done_ += bytes;
      progress_.report({.done = done_, .total = 0, .unit = "bytes", .bytes = {done_}});
    }
    entry.change = is_same ? TensorChange::same : TensorChange::changed;
    entry.first_norm = std::sqrt(sums.first);
    entry.second_norm = std::sqrt(sums.second);
    entry.distance = std::sqrt(sums.distance);
    entry.largest = sums.largest;
    entry.not_finite = sums.not_finite;
    return {};
  }

  const OpenStep& first_;
  const OpenStep& second_;
  Progress& progress_;
  std::uint64_t done_ = 0;
  std::vector<std::byte> first_bytes_ = std::vector<std::byte>(kChunkElements * 8);
  std::vector<std::byte> second_bytes_ = std::vector<std::byte>(kChunkElements * 8);
  std::vector<double> first_numbers_ = std::vector<double>(kChunkElements);
  std::vector<double> second_numbers_ = std::vector<double>(kChunkElements);
};

// Layers with running statistics in both steps.
Result<std::vector<BatchNormDiff>> diff_batch_norms(const OpenStep& first, const OpenStep& second) {
  constexpr std::string_view kMean = ".running_mean";
  const Tensors ones = by_name(first.manifest.tensors_of(StepPart::model));
  const Tensors others = by_name(second.manifest.tensors_of(StepPart::model));
  std::vector<BatchNormDiff> diffs;
  for (const TensorInfo& tensor : first.manifest.tensors_of(StepPart::model)) {
    if (!tensor.name.ends_with(kMean)) continue;
    BatchNormDiff diff{.layer = tensor.name.substr(0, tensor.name.size() - kMean.size())};
    const std::string variance = diff.layer + ".running_var";
    if (!ones.contains(variance) || !others.contains(variance) || !others.contains(tensor.name)) continue;
    STOKER_ASSIGN_OR_RETURN(first_mean, StepComparison::mean_of(first, tensor));
    STOKER_ASSIGN_OR_RETURN(second_mean, StepComparison::mean_of(second, *others.at(tensor.name)));
    STOKER_ASSIGN_OR_RETURN(first_variance, StepComparison::mean_of(first, *ones.at(variance)));
    STOKER_ASSIGN_OR_RETURN(second_variance, StepComparison::mean_of(second, *others.at(variance)));
    diff.first_mean = first_mean;
    diff.second_mean = second_mean;
    diff.first_variance = first_variance;
    diff.second_variance = second_variance;
    diffs.push_back(std::move(diff));
  }
  return diffs;
}

}  // namespace

double TensorDiff::relative() const {
  if (distance == 0) return 0;
  return first_norm == 0 ? std::numeric_limits<double>::infinity() : distance / first_norm;
}

bool StepDiff::is_same() const {
  return count(TensorChange::same) == tensors.size() && state.empty() && hyper_parameters.empty();
}

std::uint64_t StepDiff::count(TensorChange change) const {
  return static_cast<std::uint64_t>(std::ranges::count(tensors, change, &TensorDiff::change));
}

Result<StepDiff> diff_steps(const Path& first, const Path& second, const StepDiffOptions& options,
                            Progress& progress) {
  const PartFilter parts{.model = true, .optimizer = options.with_optimizer};
  STOKER_ASSIGN_OR_RETURN(one, open_step(first, parts, progress));
  STOKER_ASSIGN_OR_RETURN(other, open_step(second, parts, progress));
  StepDiff diff;
  diff.state = diff_values(one.manifest.state, other.manifest.state);
  diff.hyper_parameters = diff_values(one.manifest.hyper_parameters, other.manifest.hyper_parameters);
  StepComparison comparison(one, other, progress);
  for (const StepPart part : kParts)
    if (parts.includes(part)) STOKER_RETURN_IF_ERROR(comparison.compare(part, diff));
  STOKER_ASSIGN_OR_RETURN(batch_norms, diff_batch_norms(one, other));
  diff.batch_norms = std::move(batch_norms);
  diff.first = std::move(one.manifest);
  diff.second = std::move(other.manifest);
  return diff;
}

}  // namespace stoker::checkpoint

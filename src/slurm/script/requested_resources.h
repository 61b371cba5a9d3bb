// Resources requested by sbatch options, combined from synonymous options. Used to check user scripts.
// Thread-compatible values.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/bytes.h"
#include "stoker/time.h"

namespace stoker::slurm {

/// The effective value of a long option ("--nodes"), or nullopt.
using OptionValues = std::function<std::optional<std::string>(std::string_view name)>;

/// GPUs requested by one option: "gpu:v100:4".
struct RequestedGpus {
  std::string_view option;  ///< "--gres"
  std::string type;         ///< may be empty
  std::string count;        ///< as written; "1" without a count
};

class RequestedResources {
 public:
  /// References in `value` must outlive it.
  explicit RequestedResources(OptionValues value) : value_(std::move(value)) {}

  /// An option's value as a number; the first number of "2-4".
  std::optional<std::uint64_t> number(std::string_view name) const;
  /// The minimum; 1 if not requested.
  std::uint64_t nodes() const;
  std::optional<std::uint64_t> tasks_per_node() const;
  std::uint64_t tasks() const;
  std::vector<RequestedGpus> gpus() const;
  std::optional<std::uint64_t> gpus_per_node() const;
  /// From --mem; nullopt for 0, which means all memory of a node.
  std::optional<ByteCount> memory_per_node() const;
  std::optional<Duration> time() const;
  /// Number of array tasks; 0 without an array.
  std::uint64_t array_tasks() const;

 private:
  OptionValues value_;
};

/// The largest index of an array specification ("1-8,12%4": 12); nullopt if it is malformed.
std::optional<std::uint32_t> max_array_index(std::string_view array);

/// The indices of an array specification ("1-10%1") in ascending order, without malformed parts.
std::vector<std::uint32_t> array_indices(std::string_view array);

}  // namespace stoker::slurm

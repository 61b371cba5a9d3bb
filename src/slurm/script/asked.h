// What options for sbatch ask for, put together from those that mean the same. Used by whoever judges a batch
// script of people's own. Thread-compatible values.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/time.h"

namespace stoker::slurm {

/// The value of the option of that long name ("--nodes") that counts; nothing when it is not given.
using OptionValues = std::function<std::optional<std::string>(std::string_view name)>;

/// GPUs as one option names them: "gpu:v100:4".
struct AskedGpus {
  std::string_view option;  ///< "--gres"
  std::string type;         ///< may be empty
  std::string count;        ///< as it stands there, "1" where there is none
};

class Asked {
 public:
  /// What `value` refers to must outlive this.
  explicit Asked(OptionValues value) : value_(std::move(value)) {}

  /// An option's value as a number, of "2-4" the first.
  std::optional<std::uint64_t> number(std::string_view name) const;
  /// At least, and 1 when it does not say.
  std::uint64_t nodes() const;
  std::optional<std::uint64_t> tasks_per_node() const;
  std::uint64_t tasks() const;
  std::vector<AskedGpus> gpus() const;
  std::optional<std::uint64_t> gpus_per_node() const;
  /// Of --mem; nothing for 0, which means all that a node has.
  std::optional<ByteCount> memory_per_node() const;
  std::optional<Duration> time() const;
  /// Tasks of its array; 0 without one.
  std::uint64_t array_tasks() const;

 private:
  OptionValues value_;
};

/// The largest index of an array of this description ("1-8,12%4": 12); nothing where a part of it cannot be
/// read.
std::optional<std::uint32_t> largest_task(std::string_view array);

/// The tasks of an array of this description ("1-10%1"), ascending; those that cannot be told are left out.
std::vector<std::uint32_t> tasks_of_array(std::string_view array);

}  // namespace stoker::slurm

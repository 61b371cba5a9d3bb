// Trials of loader settings: the settings, the speed, and the file of trials written by benches and jobs
// (docs/formats/trials.md). Used by `stoker data bench`. Values; thread-compatible.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "stoker/bytes.h"
#include "stoker/status.h"

namespace stoker::loader {

/// One row of the table.
struct Trial {
  std::string job;      ///< a Slurm job, a run, or "here"
  std::string dataset;  ///< version, or the name of a Python function
  std::string loader;   ///< "stoker-train", "stoker.Loader", "stoker.DataLoader", "torch"
  std::uint32_t batch = 0;
  std::uint32_t workers = 0;
  bool pins_memory = false;
  bool is_non_blocking = false;
  std::uint32_t prefetch = 0;  ///< batches ahead, per worker; for stoker-train in total
  bool is_persistent = true;
  bool drops_last = false;
  double batch_s = 0;        ///< time that the loop waits per batch, without the first
  double first_batch_s = 0;  ///< from opening the dataset to the first batch
  ByteCount memory{0};       ///< peak resident size
  double samples_per_s = 0;
  std::string limit;  ///< the limiting stage; may be empty

  bool operator==(const Trial&) const = default;
};

/// The line of one trial in a trials file, with its line end; commas and line ends in texts become spaces.
std::string to_csv(const Trial& trial);
/// The trials of a file, without a torn last line. Fails with Invalid, naming the first invalid line.
Result<std::vector<Trial>> read_trials(const Path& file);
/// Adds lines in one write; writes the header first when the file is new.
Status append_trials(const Path& file, const std::vector<Trial>& trials);
/// The trials written by jobs: <runs>/*/attempts/*/loader-*.csv. Other files are ignored.
std::vector<Trial> collect_run_trials(const Path& runs);
/// Fastest first.
void sort_best_first(std::vector<Trial>& trials);

}  // namespace stoker::loader

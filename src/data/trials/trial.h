// Trials of loader settings: what one was, how fast it was, and the file in which trials of benches and of
// real jobs gather (docs/formats/trials.md). Used by `stoker data bench`. Values; thread-compatible.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"
#include "base/status.h"

namespace stoker::data {

/// One row of the table.
struct Trial {
  std::string job;      ///< a Slurm job, a run, or "here"
  std::string dataset;  ///< version, or the name of somebody's Python function
  std::string loader;   ///< "stoker-train", "stoker.Loader", "stoker.DataLoader", "torch"
  std::uint32_t batch = 0;
  std::uint32_t workers = 0;
  bool pins_memory = false;
  bool is_non_blocking = false;
  std::uint32_t prefetch = 0;  ///< batches ahead: of each worker, but for stoker-train in all
  bool is_persistent = true;
  bool drops_last = false;
  double batch_s = 0;        ///< that the loop waits for a batch, the first one aside
  double first_batch_s = 0;  ///< from opening the dataset to the first batch
  ByteCount memory{0};       ///< the largest resident size
  double samples_per_s = 0;
  std::string limit;  ///< the limiting stage; may be empty

  bool operator==(const Trial&) const = default;
};

/// The line of one trial in a trials file, with its line end; commas and line ends in texts become blanks.
std::string to_csv(const Trial& trial);
/// The trials of a file, a torn last line left out. Fails with Invalid naming the line that is no trial.
Result<std::vector<Trial>> read_trials(const Path& file);
/// Adds lines in one write; writes the header first when the file is new.
Status append_trials(const Path& file, const std::vector<Trial>& trials);
/// Those that jobs wrote: <runs>/*/attempts/*/loader-*.csv. A file that is no trials file is left out.
std::vector<Trial> trials_of_runs(const Path& runs);
/// Fastest first.
void sort_best_first(std::vector<Trial>& trials);

}  // namespace stoker::data

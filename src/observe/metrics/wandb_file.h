// Metrics of a .wandb file, in which Weights & Biases stores a run on the disk, read as it grows. One thread;
// bounded memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "observe/metrics/event_file.h"
#include "stoker/status.h"

namespace stoker::observe {

class WandbFileReader {
 public:
  /// Takes the next bytes of the file. Corrupt for a damaged record; the reader then ignores all further
  /// bytes.
  Status feed(std::string_view bytes, const PointSink& sink);

 private:
  /// False if the buffer ends within the fragment.
  Result<bool> read_fragment(const PointSink& sink);
  void use(std::size_t bytes);

  std::string pending_;
  std::uint64_t offset_ = 0;  ///< of `pending_` in the file
  std::string record_;        ///< its fragments so far
  bool is_large_ = false;     ///< the record is skipped
  bool is_damaged_ = false;
};

}  // namespace stoker::observe

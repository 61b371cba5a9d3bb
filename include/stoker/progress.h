// Progress reports and cancellation of long operations. Rooms take a Progress& and the command displays it.
#pragma once

#include <cstdint>
#include <string_view>

#include "stoker/bytes.h"

namespace stoker {

/// The progress of an operation.
struct ProgressState {
  std::uint64_t done = 0;
  std::uint64_t total = 0;  ///< 0: unknown
  std::string_view unit;    ///< "files", "samples"
  ByteCount bytes;          ///< transferred so far; 0: not shown
};

/// Receives progress and provides cancellation. Implementations are thread-safe and cheap: call per item.
class Progress {
 public:
  virtual ~Progress() = default;
  virtual void report(const ProgressState& state) = 0;
  /// True after the user requested a stop (Ctrl-C). Leave files in a consistent state, then return Cancelled.
  virtual bool stop_requested() const = 0;
};

/// Ignores reports and never requests a stop.
class NoProgress final : public Progress {
 public:
  void report(const ProgressState&) override {}
  bool stop_requested() const override { return false; }
};

}  // namespace stoker

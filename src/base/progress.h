// How long work tells how far it is, and learns that it should stop. Rooms take a Progress&; the command
// shows it.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/bytes.h"

namespace stoker {

/// How far a piece of work is.
struct ProgressState {
  std::uint64_t done = 0;
  std::uint64_t total = 0;  ///< 0: not known
  std::string_view unit;    ///< "files", "samples"
  ByteCount bytes;          ///< moved so far; 0: not shown
};

/// Told about progress, asked whether to go on. Implementations are thread-safe and cheap: call per item.
class Progress {
 public:
  virtual ~Progress() = default;
  virtual void report(const ProgressState& state) = 0;
  /// True once the user wants an end (Ctrl-C): finish what keeps the files whole, then return Cancelled.
  virtual bool stop_requested() const = 0;
};

/// Shows nothing, never stops.
class NoProgress final : public Progress {
 public:
  void report(const ProgressState&) override {}
  bool stop_requested() const override { return false; }
};

}  // namespace stoker

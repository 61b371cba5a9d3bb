// Where the ranks of a training leave words for each other: the store that rank 0 keeps, a map in tests. Used
// by what meets and parts (meeting.h, parting.h). No libtorch.
#pragma once

#include <string>
#include <string_view>

namespace stoker::torch {

/// Texts by key; a key is never taken away. Every call throws, as libtorch does, once rank 0 has left.
class Board {
 public:
  virtual ~Board() = default;
  virtual void set(const std::string& key, std::string_view text) = 0;
  /// Waits for it, as long as the board was told at its opening.
  virtual std::string get(const std::string& key) = 0;
  virtual bool has(const std::string& key) = 0;
};

}  // namespace stoker::torch

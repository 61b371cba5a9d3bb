// The key-value store of a training's rendezvous. Rank 0 hosts it. Used by rendezvous.h and peer_failure.h.
// No libtorch.
#pragma once

#include <string>
#include <string_view>

namespace stoker::train {

/// Maps keys to texts. Keys are never removed. After rank 0 has left, every call throws as libtorch does.
class KeyValueStore {
 public:
  virtual ~KeyValueStore() = default;
  virtual void set(const std::string& key, std::string_view text) = 0;
  /// Blocks until the key exists, up to the timeout of the store.
  virtual std::string get(const std::string& key) = 0;
  virtual bool has(const std::string& key) = 0;
};

}  // namespace stoker::train

// A key-value store in memory, for tests.
#pragma once

#include <map>
#include <stdexcept>
#include <string>
#include <string_view>

#include "train/comm/key_value_store.h"

namespace stoker::train {

/// get() throws for a missing key, since no other thread writes. One thread.
class MapKeyValueStore final : public KeyValueStore {
 public:
  void set(const std::string& key, std::string_view text) override {
    if (has_left) throw std::runtime_error("Connection closed by peer");
    texts.insert_or_assign(key, text);
  }
  std::string get(const std::string& key) override {
    if (!has(key)) throw std::runtime_error("wait timeout after 300000ms, keys: /" + key);
    return texts.at(key);
  }
  bool has(const std::string& key) override {
    if (has_left) throw std::runtime_error("Connection closed by peer");
    return texts.contains(key);
  }

  std::map<std::string, std::string> texts;
  bool has_left = false;  ///< rank 0 and its store have left
};

}  // namespace stoker::train

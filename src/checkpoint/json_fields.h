// Reads members of a JSON object strictly: the kind must be the one asked for, and the first thing wrong is
// kept. Used by this room for what it wrote itself: manifests, markers, leases. The JSON library stays in the
// source. Thread-compatible; a Fields views the JsonText it came from.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "checkpoint/state.h"

namespace stoker::checkpoint {

class Fields;

/// A parsed text, and the first error met in it.
class JsonText {
 public:
  JsonText(std::string_view subject, std::string_view text);
  ~JsonText();
  JsonText(const JsonText&) = delete;
  JsonText& operator=(const JsonText&) = delete;

  /// The members of the outermost object.
  Fields fields();

 private:
  friend class Fields;
  struct Tree;
  std::string subject_;
  std::unique_ptr<Tree> tree_;
  Status status_;
};

/// The members of one object. After an error every getter gives an empty value; look at ok() once at the end.
class Fields {
 public:
  bool ok() const { return text_->status_.ok(); }
  const Status& status() const { return text_->status_; }
  /// Keeps "<subject>: <what>" as Corrupt unless an error is kept already.
  void fail(std::string_view what);

  std::string text(std::string_view key);
  std::uint64_t natural(std::string_view key);
  std::int64_t integer(std::string_view key);
  double number(std::string_view key);
  State state(std::string_view key);
  std::vector<std::uint64_t> naturals(std::string_view key);
  std::vector<std::string> texts(std::string_view key);
  std::vector<State> states(std::string_view key);
  std::vector<Fields> objects(std::string_view key);

 private:
  friend class JsonText;
  Fields(JsonText* text, const void* object) : text_(text), object_(object) {}
  // A pointer to the library's value, or null after an error.
  const void* find(std::string_view key);
  template <typename Item, typename Read>
  std::vector<Item> list(std::string_view key, Read read);

  JsonText* text_;
  const void* object_;
};

}  // namespace stoker::checkpoint

// Strict access to members of a JSON object: types must match, and the first error is kept. Used by this room
// for its own files: manifests, markers, leases. Hides the JSON library. Thread-compatible; a JsonFields
// refers to its JsonText.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/state_values.h"
#include "stoker/status.h"

namespace stoker::checkpoint {

class JsonFields;

/// A parsed text and the first error found in it.
class JsonText {
 public:
  JsonText(std::string_view subject, std::string_view text);
  ~JsonText();
  JsonText(const JsonText&) = delete;
  JsonText& operator=(const JsonText&) = delete;

  /// Members of the outermost object.
  JsonFields fields();

 private:
  friend class JsonFields;
  struct Tree;
  std::string subject_;
  std::unique_ptr<Tree> tree_;
  Status status_;
};

/// Members of one object. After an error every getter returns an empty value; check ok() once at the end.
class JsonFields {
 public:
  bool ok() const { return text_->status_.ok(); }
  const Status& status() const { return text_->status_; }
  /// Records "<subject>: <what>" as Corrupt if there is no error yet.
  void fail(std::string_view what);

  std::string text(std::string_view key);
  std::uint64_t natural(std::string_view key);
  std::int64_t integer(std::string_view key);
  double number(std::string_view key);
  StateValues state(std::string_view key);
  std::vector<std::uint64_t> naturals(std::string_view key);
  std::vector<std::string> texts(std::string_view key);
  std::vector<StateValues> states(std::string_view key);
  std::vector<JsonFields> objects(std::string_view key);

 private:
  friend class JsonText;
  JsonFields(JsonText* text, const void* object) : text_(text), object_(object) {}
  // Pointer to the library's value; null after an error.
  const void* find(std::string_view key);
  template <typename Item, typename Read>
  std::vector<Item> list(std::string_view key, Read read);

  JsonText* text_;
  const void* object_;
};

}  // namespace stoker::checkpoint

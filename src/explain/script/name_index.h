// Where a script speaks of variables, by their names: whoever asks for one does not read the whole script.
// Made once of a script that has been read. Thread-safe when const.
#pragma once

#include <cstddef>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace stoker::explain {

struct Script;

/// Words, asked for by how they begin. Views: the text that they lie in must outlive this.
class Beginnings {
 public:
  Beginnings() = default;
  explicit Beginnings(std::vector<std::string_view> words);

  /// Whether one of the words is this, or goes on behind it.
  bool has(std::string_view beginning) const;

 private:
  std::vector<std::string_view> words_;  // sorted
};

class NameIndex {
 public:
  NameIndex() = default;
  /// The script's text, comments, settings and exported names are as they stay, and where they stay.
  explicit NameIndex(const Script& script);

  /// Whether $NAME or ${NAME...} stands anywhere outside comments.
  bool is_read(std::string_view name) const { return read_.contains(name); }
  /// Where the name stands without a $ before it, outside comments, which may give it a value: by =, for,
  /// read, ((...)) and others; npos where it stands nowhere.
  std::size_t first_given(std::string_view name) const;
  /// Whether $NAME or ${NAME stands anywhere, or a longer name that begins with it; comments count.
  bool is_mentioned(std::string_view name) const { return mentioned_.has(name); }
  /// "for NAME in" stands somewhere.
  bool is_loop_variable(std::string_view name) const { return loops_.contains(name); }
  /// "((NAME" stands somewhere, or a longer name that begins with it.
  bool is_counted(std::string_view name) const { return counted_.has(name); }
  bool is_set(std::string_view name) const { return settings_.contains(name); }
  /// Which of Script::settings are of that name, in their order.
  const std::vector<std::size_t>& settings_of(std::string_view name) const;
  /// By "export NAME" or "export NAME=value".
  bool is_exported(std::string_view name) const { return exported_.contains(name); }

 private:
  void read_text(const Script& script);

  std::unordered_set<std::string_view> read_;
  std::unordered_map<std::string_view, std::size_t> given_;
  std::unordered_set<std::string_view> loops_;
  std::unordered_map<std::string_view, std::vector<std::size_t>> settings_;
  std::unordered_set<std::string_view> exported_;
  Beginnings mentioned_;
  Beginnings counted_;
};

}  // namespace stoker::explain

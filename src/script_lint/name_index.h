// An index of the variable names in a script, so that rules need not search the text. Built once from a
// parsed script. Thread-safe when const.
#pragma once

#include <cstddef>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace stoker::script_lint {

struct Script;

/// A set of words with prefix queries. Views: the text must outlive the set.
class PrefixSet {
 public:
  PrefixSet() = default;
  explicit PrefixSet(std::vector<std::string_view> words);

  /// Whether one of the words begins with `prefix`.
  bool has_prefix(std::string_view prefix) const;

 private:
  std::vector<std::string_view> words_;  // sorted
};

class NameIndex {
 public:
  NameIndex() = default;
  /// The text, comments, settings and exports of the script must stay in place and unchanged.
  explicit NameIndex(const Script& script);

  /// Whether $NAME or ${NAME...} occurs outside comments.
  bool is_read(std::string_view name) const { return read_.contains(name); }
  /// The first occurrence without $ outside comments, which may assign a value (=, for, read, ((...))); npos
  /// without one.
  std::size_t first_assignment(std::string_view name) const;
  /// Whether $NAME, ${NAME or a longer name occurs anywhere, including comments.
  bool is_mentioned(std::string_view name) const { return mentioned_.has_prefix(name); }
  /// Whether "for NAME in" occurs.
  bool is_loop_variable(std::string_view name) const { return loops_.contains(name); }
  /// Whether "((NAME" or a longer name occurs.
  bool is_arithmetic(std::string_view name) const { return arithmetic_.has_prefix(name); }
  bool is_set(std::string_view name) const { return settings_.contains(name); }
  /// Indices into Script::settings, in order.
  const std::vector<std::size_t>& settings_of(std::string_view name) const;
  /// Whether "export NAME" or "export NAME=value" occurs.
  bool is_exported(std::string_view name) const { return exported_.contains(name); }

 private:
  void read_text(const Script& script);

  std::unordered_set<std::string_view> read_;
  std::unordered_map<std::string_view, std::size_t> assignments_;
  std::unordered_set<std::string_view> loops_;
  std::unordered_map<std::string_view, std::vector<std::size_t>> settings_;
  std::unordered_set<std::string_view> exported_;
  PrefixSet mentioned_;
  PrefixSet arithmetic_;
};

}  // namespace stoker::script_lint

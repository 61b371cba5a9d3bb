// Finds the first rule that matches a line: a filter of keywords, then the patterns of the rules that have
// one. Internal to this folder.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include <re2/re2.h>

#include "diagnose/automaton.h"
#include "diagnose/rule.h"

namespace stoker::diagnose {

/// A matching rule, with groups that point into the text.
struct RuleMatch {
  const FailureRule* rule = nullptr;
  std::array<re2::StringPiece, 5> groups;
  int group_count = 0;  ///< with the whole match
};

/// All rules. Thread-safe.
class RuleMatcher {
 public:
  /// `others`: keywords that belong to no rule; they have static storage.
  explicit RuleMatcher(std::span<const std::string_view> others);

  /// The filter. Its keywords: first of the rules, then `others`.
  const Automaton& automaton() const { return *automaton_; }
  std::size_t first_other() const { return first_other_; }

  /// The first matching rule. `found` receives the keywords of the text.
  std::optional<RuleMatch> find(std::string_view text, std::vector<std::uint16_t>& found);

 private:
  // A pattern that is compiled on first use: a log needs only a few of them.
  class LazyPattern {
   public:
    explicit LazyPattern(std::string_view text) : text_(text) {}

    // Null if a keyword is sufficient.
    const RE2* get();

   private:
    const std::string_view text_;
    std::once_flag once_;
    std::unique_ptr<RE2> compiled_;
  };

  void add(std::string_view word, std::size_t rule);

  std::vector<std::string_view> words_;
  std::vector<std::vector<std::uint16_t>> rules_of_;  // by keyword: indices of rules, in order
  std::deque<LazyPattern> patterns_;                  // by rule
  std::unique_ptr<Automaton> automaton_;
  std::size_t first_other_ = 0;
};

}  // namespace stoker::diagnose

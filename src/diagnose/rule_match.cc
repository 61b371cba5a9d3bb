#include "diagnose/rule_match.h"

#include <algorithm>
#include <string>

#include "stoker/status.h"
#include "stoker/text.h"

namespace stoker::diagnose {

const RE2* RuleMatcher::LazyPattern::get() {
  if (text_.empty()) return nullptr;
  std::call_once(once_, [this] { compiled_ = std::make_unique<RE2>(std::string(text_)); });
  STOKER_CHECK(compiled_->ok());
  return compiled_.get();
}

RuleMatcher::RuleMatcher(std::span<const std::string_view> others) {
  const auto& rules = failure_rules();
  for (std::size_t i = 0; i < rules.size(); ++i) {
    for (const std::string_view word : split(rules[i]->words, '\n')) add(word, i);
    patterns_.emplace_back(rules[i]->pattern);
  }
  first_other_ = words_.size();
  for (const std::string_view word : others) {
    words_.push_back(word);
    rules_of_.emplace_back();
  }
  automaton_ = std::make_unique<Automaton>(words_);
}

void RuleMatcher::add(std::string_view word, std::size_t rule) {
  auto at = std::find(words_.begin(), words_.end(), word);
  if (at == words_.end()) {
    words_.push_back(word);
    rules_of_.emplace_back();
    at = words_.end() - 1;
  }
  rules_of_[static_cast<std::size_t>(at - words_.begin())].push_back(static_cast<std::uint16_t>(rule));
}

std::optional<RuleMatch> RuleMatcher::find(std::string_view text, std::vector<std::uint16_t>& found) {
  found.clear();
  automaton_->find_all(text, found);
  std::vector<std::uint16_t> rules;
  for (const std::uint16_t word : found)
    rules.insert(rules.end(), rules_of_[word].begin(), rules_of_[word].end());
  std::sort(rules.begin(), rules.end());
  rules.erase(std::unique(rules.begin(), rules.end()), rules.end());
  for (const std::uint16_t number : rules) {
    const RE2* pattern = patterns_[number].get();
    RuleMatch match{.rule = failure_rules()[number], .groups = {}, .group_count = 0};
    if (pattern == nullptr) return match;
    match.group_count = std::min(5, pattern->NumberOfCapturingGroups() + 1);
    const re2::StringPiece subject(text.data(), text.size());
    if (pattern->Match(subject, 0, text.size(), RE2::UNANCHORED, match.groups.data(), match.group_count))
      return match;
  }
  return std::nullopt;
}

}  // namespace stoker::diagnose

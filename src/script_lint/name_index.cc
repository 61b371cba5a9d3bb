#include "script_lint/name_index.h"

#include <algorithm>
#include <utility>

#include "bash/characters.h"
#include "script_lint/script.h"

namespace stoker::script_lint {
namespace {

// "$NAME", "${NAME".
bool is_named_before(std::string_view before) { return before.ends_with('$') || before.ends_with("${"); }

// "$NAME", "${NAME", "${#NAME", "${!NAME".
bool has_sign_before(std::string_view before) {
  return is_named_before(before) || before.ends_with("${#") || before.ends_with("${!");
}

}  // namespace

PrefixSet::PrefixSet(std::vector<std::string_view> words) : words_(std::move(words)) {
  std::sort(words_.begin(), words_.end());
  words_.erase(std::unique(words_.begin(), words_.end()), words_.end());
}

bool PrefixSet::has_prefix(std::string_view prefix) const {
  const auto found = std::lower_bound(words_.begin(), words_.end(), prefix);
  return found != words_.end() && found->starts_with(prefix);
}

NameIndex::NameIndex(const Script& script) {
  read_text(script);
  for (std::size_t i = 0; i < script.settings.size(); ++i) settings_[script.settings[i].name].push_back(i);
  exported_.insert(script.exported.begin(), script.exported.end());
}

// Indexes every identifier of the text.
void NameIndex::read_text(const Script& script) {
  const std::string_view text = script.text;
  std::vector<std::string_view> mentioned;
  std::vector<std::string_view> counted;
  auto comment = script.tree.comments.begin();  // sorted by position
  std::size_t comments_end = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (!bash::is_name(text[at])) continue;
    std::size_t end = at;
    while (end < text.size() && bash::is_name(text[end])) ++end;
    const std::string_view name = text.substr(at, end - at);
    const std::string_view before = text.substr(0, at);
    for (; comment != script.tree.comments.end() && comment->span.begin <= at; ++comment)
      comments_end = std::max(comments_end, comment->span.end);
    const bool is_read = has_sign_before(before);
    if (at >= comments_end && is_read) read_.insert(name);
    if (at >= comments_end && !is_read) assignments_.emplace(name, at);
    if (is_named_before(before)) mentioned.push_back(name);
    if (before.ends_with("((") || before.ends_with("(( ")) counted.push_back(name);
    if (before.ends_with("for ") && text.substr(end).starts_with(" in")) loops_.insert(name);
    at = end;
  }
  mentioned_ = PrefixSet(std::move(mentioned));
  arithmetic_ = PrefixSet(std::move(counted));
}

std::size_t NameIndex::first_assignment(std::string_view name) const {
  const auto found = assignments_.find(name);
  return found == assignments_.end() ? std::string_view::npos : found->second;
}

const std::vector<std::size_t>& NameIndex::settings_of(std::string_view name) const {
  static const std::vector<std::size_t> kNone;
  const auto found = settings_.find(name);
  return found == settings_.end() ? kNone : found->second;
}

}  // namespace stoker::script_lint

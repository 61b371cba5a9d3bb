// Which words of a script have the same value without a shell. Internal to this folder.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "draft/draft.h"
#include "draft/draft_internal.h"
#include "script_lint/script.h"

namespace stoker::draft {

/// Expands words without a shell: ~ and variables with a constant value. Returns nothing for anything else.
class WordExpander {
 public:
  /// `target` must outlive this.
  WordExpander(const Script& script, const DraftTarget& target);
  std::optional<std::string> literal(const bash::Word& word) const;
  /// Like literal, and also expands $HOME, $SCRATCH and $SLURM_SUBMIT_DIR.
  std::optional<std::string> path(const bash::Word& word) const;

 private:
  std::optional<std::string> text_of(const bash::Word& word, bool is_path) const;
  std::optional<std::string> from_environment(std::string_view name, bool is_path) const;

  /// The value of a variable that is set before `at` and never changes.
  std::optional<std::string> constant(std::string_view name, std::size_t at) const;

  const DraftTarget& target_;
  std::map<std::string, std::pair<std::string, std::size_t>, std::less<>> constants_;
};

/// Whether Stoker sets the variable for every rank.
bool is_set_by_stoker(std::string_view name);

/// The first line of the unit, truncated.
std::string summary(const Script& script, const Unit& unit);

}  // namespace stoker::draft

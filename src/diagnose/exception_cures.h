// Cures for exceptions of Python that no rule explains, by their type. Internal to this folder. Thread-safe:
// no state.
#pragma once

#include <span>
#include <string_view>

namespace stoker::diagnose {

/// A cure for the exceptions that a pattern matches.
struct ExceptionCure {
  std::string_view pattern;  ///< RE2, from the start of the exception
  std::string_view cure;
};

/// All of them; the first match applies.
std::span<const ExceptionCure> exception_cures();

/// The cure for an exception, "KeyError: 'lr'"; "" without one.
std::string_view cure_of_exception(std::string_view exception);

/// The same for failures that a program states in its own words, "rhat above 1.05 for: sigma".
std::span<const ExceptionCure> verdict_cures();
std::string_view cure_of_verdict(std::string_view words);

}  // namespace stoker::diagnose

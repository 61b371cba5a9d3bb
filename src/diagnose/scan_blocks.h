// What the files of the scanner share. Internal to them. Thread-safe: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diagnose/scan.h"

namespace stoker::diagnose {

struct RuleMatch;

/// Limit of open tracebacks, messages, dumps and reports, each.
inline constexpr std::size_t kMaxTracebacks = 4096;
/// The beginning of multi-line blocks.
inline constexpr std::string_view kTracebackStart = "Traceback (most recent call last)";
/// Anomaly mode of torch: the calls of the operation whose backward failed.
inline constexpr std::string_view kForwardCall = "Traceback of forward call that caused the error";
inline constexpr std::string_view kSyntaxError = "SyntaxError: ";
/// Reports of exceptions that do not end the program: by Python's logging and Loguru, and by destructors.
inline constexpr std::string_view kLoggingError = "--- Logging error";
inline constexpr std::string_view kIgnored = "Exception ignored ";

/// A program reports that it continues within this number of lines after an error.
inline constexpr std::uint64_t kAfterError = 3;
/// From the sentence between two exceptions to the second traceback, by ranks that print alternately.
inline constexpr std::uint64_t kAfterChain = 8;

/// The first rule that matches the text. `found` receives the keywords of the text: reuse it for many lines.
std::optional<RuleMatch> find_rule(std::string_view text, std::vector<std::uint16_t>& found);
/// The same, for a few lines.
std::optional<RuleMatch> find_rule(std::string_view text);

/// The text as evidence: printable, without blanks around it, of a limited length.
std::string shown(std::string_view text);

/// The rule of an exception without a more specific one.
const FailureRule& exception_rule();

/// Sets the groups of the hit from the match.
void set_groups(const RuleMatch& match, Hit& hit);

}  // namespace stoker::diagnose

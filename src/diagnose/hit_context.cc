#include "diagnose/hit_context.h"

#include <algorithm>
#include <string>
#include <vector>

#include <re2/re2.h>

#include "diagnose/line_signs.h"
#include "diagnose/rule_match.h"
#include "diagnose/scan_blocks.h"
#include "stoker/text.h"

namespace stoker::diagnose {
namespace {

// Lines above an end in which its reason is looked for, and the part of a cause that shows it.
constexpr std::size_t kAboveEnd = 6;
constexpr std::size_t kAboveTraceback = 3;
constexpr std::string_view kPartForReason = "[[: {4}]]";
// The part that shows the place in a program of Fortran, which its runtime prints above the error.
constexpr std::string_view kPartForPlace = "[[ ({4})]]";
constexpr std::string_view kFortranPlace = "At line ";
// Lines above two words of one name in which the whole name is looked for.
constexpr std::size_t kAboveWords = 24;
constexpr std::string_view kUsesFile = "tool-file-missing";
// Lines that complete the hit above them.
constexpr std::string_view kExecutable = "Executable: ";
constexpr std::string_view kWhat = "  what():";
constexpr std::uint64_t kLinesOfReport = 6;

bool has_part(const FailureRule& rule, std::string_view part) {
  return rule.cause.find(part) != std::string_view::npos;
}

bool complete_actor(std::string_view text, Hit& hit) {
  static const RE2 kField(R"(^ *(class_name|name|pid): (\S.*)$)");
  std::string name, value;
  if (!RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), kField, &name, &value)) return false;
  hit.groups[name == "class_name" ? 0 : name == "name" ? 1 : 2] = shown(value);
  return true;
}

bool complete_repository(std::string_view text, Hit& hit) {
  if (!hit.groups[0].empty() || !hit.groups[1].empty()) return false;
  const auto named = find_rule(text);
  if (!named || named->rule != hit.rule) return false;
  set_groups(*named, hit);
  return true;
}

bool complete_compiler_option(std::string_view text, Hit& hit) {
  static const RE2 kStandard(R"(only available (?:from|with|in|since) C\+\+(\d\d))");
  std::string standard;
  if (!RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), kStandard, &standard)) return false;
  hit.groups[3] = format("-std=c++{}", standard);
  return true;
}

bool complete_keys(std::string_view text, Hit& hit) {
  static const RE2 kKeys(R"re(^\s*(Missing|Unexpected) key\(s\) in state_dict: "([^"]+)")re");
  std::string kind, key;
  if (!RE2::PartialMatch(re2::StringPiece(text.data(), text.size()), kKeys, &kind, &key)) return false;
  const auto known = find_rule(text);
  if (known && known->rule != hit.rule) return false;
  hit.groups[kind == "Missing" ? 1 : 2] = shown(key);
  return true;
}

// A loss of TensorFlow that is not finite because its input is not.
bool complete_not_finite(std::string_view text, Hit& hit) {
  if (text.find("[[IteratorGetNext]]") == std::string_view::npos) return false;
  const auto of_input = find_rule("Detected Infinity or NaN in output 0 of \"IteratorGetNext\"");
  if (!of_input) return false;
  hit.rule = of_input->rule;
  return true;
}

}  // namespace

void complete_from_above(const LinesAbove& above, Hit& hit) {
  const bool shows_reason = has_part(*hit.rule, kPartForReason);
  if (!shows_reason && !has_part(*hit.rule, kPartForPlace)) return;
  std::uint64_t number = above.number;
  for (const std::string& text : above.nearest(kAboveEnd)) {
    --number;
    if (is_of_launcher(text)) continue;
    if (text.starts_with(kFortranPlace)) hit.groups[3] = shown(text);
    if (!states_reason(text) || !shows_reason) return;
    hit.groups[3] = hit.text = shown(text);
    hit.line = hit.begin = number;
    return;
  }
}

NotableLine message_above_traceback(const LinesAbove& above) {
  std::uint64_t number = above.number;
  for (const std::string& text : above.nearest(kAboveTraceback)) {
    --number;
    if (is_of_launcher(text)) continue;
    if (level_of(text) == LogLevel::none && states_reason(text)) return {number, shown(text), -1};
  }
  return {};
}

void complete_from_message(const NotableLine& message, Hit& hit) {
  if (message.line == 0 || !has_part(*hit.rule, kPartForReason)) return;
  const std::string_view tool = hit.groups[0];
  if (!message.text.starts_with(tool) && message.line + 1 != hit.begin) return;
  hit.groups[3] = hit.text = message.text;
  hit.line = message.line;
}

void join_words(const LinesAbove& above, const Hit& hit, Hit& before) {
  static const RE2 kCommand(R"(^(\w+): )");
  if (hit.rule->name != kUsesFile || before.rule->name != kUsesFile) return;
  std::string command, command_before;
  const bool is_next = before.line + 1 == hit.line && before.rank == hit.rank &&
                       RE2::PartialMatch(hit.text, kCommand, &command) &&
                       RE2::PartialMatch(before.text, kCommand, &command_before) && command == command_before;
  if (!is_next) return;
  const std::string whole = format("{} {}", before.groups[0], hit.groups[0]);
  const std::vector<std::string> lines = above.nearest(kAboveWords);
  const bool is_known = std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
    return line.find(whole) != std::string::npos;
  });
  // A first word is no path, and no file with an ending.
  if (!is_known && before.groups[0].find_first_of("./*") != std::string::npos) return;
  const std::string in_words =
      is_known ? format("{}: {} (in words)", command, whole)
               : format("{}: {}, {} (perhaps words)", command, before.groups[0], hit.groups[0]);
  const auto found = find_rule(in_words);
  if (!found) return;
  before.rule = found->rule;
  set_groups(*found, before);
}

bool complete_from_below(std::string_view text, std::uint64_t distance, Hit& hit) {
  const std::string_view rule = hit.rule->name;
  if (rule == "mpirun-cannot-start" && text.starts_with(kExecutable) && distance <= kLinesOfReport) {
    hit.groups[0] = shown(text.substr(kExecutable.size()));
    return true;
  }
  if (rule == "rust-panic" && distance == 1 && hit.groups[0].empty() && !text.starts_with("note: ") &&
      !text.starts_with("stack backtrace")) {
    hit.groups[0] = shown(text);
    return true;
  }
  if (rule == "rustc-error" && distance == 1) {
    hit.groups[2] = shown(trim(text.substr(std::min(text.find("--> ") + 4, text.size()))));
    return true;
  }
  if (rule == kRayActorDied && distance <= kLinesOfReport) return complete_actor(text, hit);
  if (rule == "tensorflow-not-finite" && distance <= 3) return complete_not_finite(text, hit);
  if (rule == "hub-gated" && distance <= 2) return complete_repository(text, hit);
  if (rule == "compile-error" && distance <= kLinesOfReport) return complete_compiler_option(text, hit);
  if (rule == "state-dict-differs" && distance <= 2) return complete_keys(text, hit);
  if (rule != "cpp-exception" || !text.starts_with(kWhat) || distance > 2 || find_rule(text)) return false;
  hit.groups[1] = shown(text.substr(kWhat.size()));
  return true;
}

}  // namespace stoker::diagnose

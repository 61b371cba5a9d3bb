#include "diagnose/causal_link.h"

#include <set>
#include <string>

#include <re2/re2.h>

#include "stoker/text.h"

namespace stoker::diagnose {
namespace {

constexpr std::size_t kShortestName = 3;
constexpr std::string_view kGpu = "gpu";

struct MessageWords {
  std::set<std::string> all;
  std::set<std::string> names;  ///< quoted, or no words of prose: "cn07", "data.json", "flash_attn"
};

// Places in code and times, which name no subject.
bool is_place(const std::string& word) {
  static const RE2 kPlace(
      R"(^[\d.:/-]+$|^[a-z]?\d{4,}$|\.(?:py|cc?|cpp|hpp|h|cu|pyx|so[\d.]*)$|site-packages)");
  return RE2::PartialMatch(word, kPlace);
}

void add(const std::string& word, bool is_name, MessageWords& words) {
  if (word.size() < kShortestName || is_place(word)) return;
  words.all.insert(word);
  if (is_name) words.names.insert(word);
}

MessageWords words_of(std::string_view text) {
  static const RE2 kWord(R"((['"`]?)([\w./-]+))");
  static const RE2 kOfGpu(R"(^(?:cuda|gpus?|nvidia|cudnn|cublas|nvml)$)");
  static const RE2 kName(R"([_/\d]|\w\.\w|\w-\w)");
  static const RE2 kType(R"((?:error|exception|warning)$|^/?(?:devices?|files?|directory|folder)$)");
  MessageWords words;
  re2::StringPiece rest(text.data(), text.size());
  std::string quote, raw;
  while (RE2::FindAndConsume(&rest, kWord, &quote, &raw)) {
    std::string word = to_lower(raw);
    while (word.ends_with('.') || word.ends_with('-') || word.ends_with('/')) word.pop_back();
    if (RE2::PartialMatch(word, kType)) continue;
    if (RE2::PartialMatch(word, kOfGpu)) {
      add(std::string(kGpu), true, words);
      continue;
    }
    const bool is_name = !quote.empty() || RE2::PartialMatch(word, kName);
    add(word, is_name, words);
    // A path is also named by its last part.
    if (const std::size_t slash = word.rfind('/'); slash != std::string::npos)
      if (!RE2::PartialMatch(word.substr(slash + 1), kType)) add(word.substr(slash + 1), is_name, words);
  }
  return words;
}

bool has_any(const std::set<std::string>& names, const std::set<std::string>& words) {
  for (const std::string& name : names) {
    if (words.contains(name)) return true;
  }
  return false;
}

}  // namespace

bool share_a_subject(std::string_view a, std::string_view b) {
  const MessageWords of_a = words_of(a), of_b = words_of(b);
  return has_any(of_a.names, of_b.all) || has_any(of_b.names, of_a.all);
}

bool names_a_subject(std::string_view message) { return !words_of(message).names.empty(); }

bool is_program_error(std::string_view exception) {
  static const RE2 kProgram(
      R"(^(?:\w+\.)*(?:Key|Type|Name|UnboundLocal|Attribute|Index|ZeroDivision|Module\w+|Import|Syntax|Indentation|NotImplemented|Assertion)Error\b)");
  return RE2::PartialMatch(re2::StringPiece(exception.data(), exception.size()), kProgram);
}

}  // namespace stoker::diagnose

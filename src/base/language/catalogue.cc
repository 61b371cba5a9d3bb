#include "base/language/catalogue.h"

#include "stoker/text.h"

namespace stoker {
namespace {

// The text that the next quoted line continues.
enum class PoField { none, english, translated };

// Appends the text between the quotes of `"...\n"`.
Status unquote(std::string_view quoted, std::size_t line, std::string& text) {
  if (quoted.size() < 2 || quoted.front() != '"' || quoted.back() != '"')
    return corrupt("catalogue: line {}: expected a string in double quotes", line);
  quoted = quoted.substr(1, quoted.size() - 2);
  for (std::size_t i = 0; i < quoted.size(); ++i) {
    if (quoted[i] == '"') return corrupt("catalogue: line {}: a double quote without a backslash", line);
    if (quoted[i] != '\\') {
      text += quoted[i];
      continue;
    }
    const char c = ++i < quoted.size() ? quoted[i] : '\0';
    if (c != '\\' && c != '"' && c != 'n' && c != 't' && c != 'r')
      return corrupt("catalogue: line {}: only \\\\ \\\" \\n \\t \\r are allowed after a backslash", line);
    text += c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
  }
  return {};
}

class PoParser {
 public:
  Status add_line(std::string_view line, std::size_t number) {
    constexpr std::string_view kEnglish = "msgid ";
    constexpr std::string_view kTranslated = "msgstr ";
    if (line.empty() || line.starts_with('#')) {
      finish();
      if (line.starts_with("#,") && line.find("fuzzy") != std::string_view::npos) next_is_fuzzy_ = true;
      return {};
    }
    if (line.starts_with(kEnglish)) {
      finish();
      entry_ = {.english = "", .translated = "", .line = number, .is_fuzzy = next_is_fuzzy_};
      next_is_fuzzy_ = false;
      part_ = PoField::english;
      return unquote(line.substr(kEnglish.size()), number, entry_.english);
    }
    if (line.starts_with(kTranslated) && part_ == PoField::english) {
      part_ = PoField::translated;
      return unquote(line.substr(kTranslated.size()), number, entry_.translated);
    }
    if (line.starts_with('"') && part_ != PoField::none)
      return unquote(line, number, part_ == PoField::english ? entry_.english : entry_.translated);
    return corrupt("catalogue: line {}: expected msgid, msgstr, a string or a comment", number);
  }

  // Ends an entry. The header has an empty English text.
  void finish() {
    if (part_ == PoField::translated && !entry_.english.empty()) entries.push_back(std::move(entry_));
    if (part_ == PoField::translated) part_ = PoField::none;
  }

  std::vector<CatalogueEntry> entries;

 private:
  CatalogueEntry entry_;
  PoField part_ = PoField::none;
  bool next_is_fuzzy_ = false;
};

}  // namespace

Result<std::vector<CatalogueEntry>> read_catalogue(std::string_view po) {
  PoParser reader;
  std::size_t number = 0;
  for (const std::string_view line : split(po, '\n'))
    STOKER_RETURN_IF_ERROR(reader.add_line(trim(line), ++number));
  reader.finish();
  return std::move(reader.entries);
}

std::vector<std::string> placeholders_in(std::string_view pattern) {
  std::vector<std::string> found;
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    if (pattern[at] != '{') continue;
    if (pattern.substr(at).starts_with("{{")) {
      ++at;
      continue;
    }
    const std::size_t end = pattern.find('}', at);
    if (end == std::string_view::npos) break;
    const std::string_view inside = pattern.substr(at + 1, end - at - 1);
    // "{until: done}" in a log rule is literal text.
    if (inside.find(' ') == std::string_view::npos) found.emplace_back(pattern.substr(at, end - at + 1));
    at = end;
  }
  return found;
}

Catalogue::Catalogue(const std::vector<CatalogueEntry>& entries) {
  texts_.reserve(entries.size());
  for (const CatalogueEntry& entry : entries) {
    if (!entry.is_fuzzy && !entry.translated.empty()) texts_.emplace(entry.english, entry.translated);
  }
}

std::string_view Catalogue::find(std::string_view english) const {
  const auto found = texts_.find(english);
  return found == texts_.end() ? std::string_view() : found->second;
}

}  // namespace stoker

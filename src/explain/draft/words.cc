// Which words of a script mean the same without a shell.
#include <algorithm>
#include <array>
#include <iterator>

#include "base/text.h"
#include "explain/draft/sheet.h"

namespace stoker::explain::draft {
namespace {

constexpr std::size_t kLongestValue = 4096;
constexpr std::size_t kLongestText = std::size_t{64} << 10;

bool needs_shell(std::string_view text, bool is_quoted) {
  if (text.find_first_of("\n\r") != std::string_view::npos) return true;
  return !is_quoted && text.find_first_of("*?[]{}") != std::string_view::npos;
}

}  // namespace

Words::Words(const Script& script, const DraftPlace& place) : place_(place) {
  std::map<std::string_view, int> times;
  for (const Setting& setting : script.settings) times[setting.name] += setting.is_of_command ? 0 : 1;
  // Set in an if or a case it holds only sometimes.
  std::vector<bash::Span> outermost;
  for (const bash::Item& item : script.tree.list.items) {
    for (const bash::Command& command : item.pipeline.commands) {
      if (command.kind == bash::CommandKind::simple) outermost.push_back(command.span);
    }
  }
  const auto is_outermost = [&](const bash::Span& span) {
    const auto next =
        std::upper_bound(outermost.begin(), outermost.end(), span.begin,
                         [](std::size_t at, const bash::Span& each) { return at < each.begin; });
    return next != outermost.begin() && span.end <= std::prev(next)->end;
  };
  // In the order of the text, so that a value is made of those that are known by then.
  for (const Setting& setting : script.settings) {
    const Context& context = setting.context;
    const bash::Assignment& assignment = *setting.assignment;
    const bool is_sure = times[setting.name] == 1 && !setting.is_of_command && !context.is_condition &&
                         !context.is_background && !context.launcher && !assignment.appends &&
                         !assignment.is_array && is_outermost(assignment.span);
    if (!is_sure) continue;
    auto value = text_of(assignment.value, false);
    if (value && value->size() <= kLongestValue)
      constants_[setting.name] = {std::move(*value), assignment.span.end};
  }
}

std::optional<std::string> Words::constant(std::string_view name, std::size_t at) const {
  const auto known = constants_.find(name);
  if (known == constants_.end() || known->second.second > at) return std::nullopt;
  return known->second.first;
}

std::optional<std::string> Words::outside(std::string_view name, bool is_path) const {
  constexpr std::array<std::string_view, 7> kFolders = {"HOME", "SCRATCH", "WORK",    "PROJECT",
                                                        "USER", "DATA",    "PROJECTS"};
  if (!is_path) return std::nullopt;
  if (name == "SLURM_SUBMIT_DIR" || name == "PWD") return ".";
  if (std::find(kFolders.begin(), kFolders.end(), name) == kFolders.end()) return std::nullopt;
  return place_.environment ? place_.environment(name) : std::nullopt;
}

std::optional<std::string> Words::text_of(const bash::Word& word, bool is_path) const {
  std::string text;
  for (const bash::Piece& piece : word.pieces) {
    if (piece.kind == bash::PieceKind::literal) {
      if (needs_shell(piece.text, piece.is_quoted)) return std::nullopt;
      const bool has_tilde = text.empty() && !piece.is_quoted && piece.text.starts_with('~');
      if (has_tilde && piece.text.size() > 1 && piece.text[1] != '/') return std::nullopt;
      if (has_tilde) {
        const auto home = place_.environment ? place_.environment("HOME") : std::nullopt;
        if (!home) return std::nullopt;
        text += *home + piece.text.substr(1);
      } else {
        text += piece.text;
      }
    } else if (piece.kind == bash::PieceKind::variable && piece.operation.empty()) {
      auto value = constant(piece.text, piece.span.begin);
      if (!value) value = outside(piece.text, is_path);
      const bool splits = value && !piece.is_quoted && value->find_first_of(" \t*?[") != std::string::npos;
      if (!value || splits) return std::nullopt;
      text += *value;
    } else {
      return std::nullopt;
    }
    if (text.size() > kLongestText) return std::nullopt;
  }
  return text;
}

std::optional<std::string> Words::literal(const bash::Word& word) const { return text_of(word, false); }

std::optional<std::string> Words::path(const bash::Word& word) const {
  auto text = text_of(word, true);
  if (text && text->starts_with("./") && text->size() > 2) text->erase(0, 2);
  if (!text || text->empty()) return std::nullopt;
  return text;
}

bool is_set_by_stoker(std::string_view name) {
  constexpr std::array<std::string_view, 8> kNames = {
      "RANK",      "LOCAL_RANK",  "WORLD_SIZE",  "LOCAL_WORLD_SIZE",
      "NODE_RANK", "MASTER_ADDR", "MASTER_PORT", "WORLD_RANK"};
  return std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

std::string summary(const Script& script, const Unit& unit) {
  constexpr std::size_t kLongest = 60;
  std::string_view text = trim(script.at(unit.span));
  const std::size_t end = text.find('\n');
  const bool is_cut = end != std::string_view::npos || text.size() > kLongest;
  text = trim(text.substr(0, std::min(end, text.size())));
  std::size_t length = std::min(text.size(), kLongest);
  while (length > 0 && length < text.size() && (static_cast<unsigned char>(text[length]) & 0xC0u) == 0x80u)
    --length;
  return printable(text.substr(0, length)) + (is_cut ? " …" : "");
}

}  // namespace stoker::explain::draft

#include "draft/words.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "stoker/text.h"

namespace stoker::draft {
namespace {

constexpr std::size_t kLongestValue = 4096;
constexpr std::size_t kLongestText = std::size_t{64} << 10;

bool needs_shell(std::string_view text, bool is_quoted) {
  if (text.find_first_of("\n\r") != std::string_view::npos) return true;
  return !is_quoted && text.find_first_of("*?[]{}") != std::string_view::npos;
}

}  // namespace

WordExpander::WordExpander(const Script& script, const DraftTarget& target) : target_(target) {
  std::map<std::string_view, int> times;
  for (const VariableSetting& setting : script.settings)
    times[setting.name] += setting.is_command_scoped ? 0 : 1;
  // A value inside if or case is conditional.
  std::vector<bash::Span> outermost;
  for (const bash::Item& item : script.tree.list.items) {
    for (const bash::ShellCommand& command : item.pipeline.commands) {
      if (command.kind == bash::CommandKind::simple) outermost.push_back(command.span);
    }
  }
  const auto is_outermost = [&](const bash::Span& span) {
    const auto next =
        std::upper_bound(outermost.begin(), outermost.end(), span.begin,
                         [](std::size_t at, const bash::Span& each) { return at < each.begin; });
    return next != outermost.begin() && span.end <= std::prev(next)->end;
  };
  // In text order, so that values can refer to earlier ones.
  for (const VariableSetting& setting : script.settings) {
    const Context& context = setting.context;
    const bash::Assignment& assignment = *setting.assignment;
    const bool is_sure = times[setting.name] == 1 && !setting.is_command_scoped && !context.is_condition &&
                         !context.is_background && !context.launcher && !assignment.appends &&
                         !assignment.is_array && is_outermost(assignment.span);
    if (!is_sure) continue;
    auto value = text_of(assignment.value, false);
    if (value && value->size() <= kLongestValue)
      constants_[setting.name] = {std::move(*value), assignment.span.end};
  }
}

std::optional<std::string> WordExpander::constant(std::string_view name, std::size_t at) const {
  const auto known = constants_.find(name);
  if (known == constants_.end() || known->second.second > at) return std::nullopt;
  return known->second.first;
}

std::optional<std::string> WordExpander::from_environment(std::string_view name, bool is_path) const {
  constexpr std::array<std::string_view, 7> kFolders = {"HOME", "SCRATCH", "WORK",    "PROJECT",
                                                        "USER", "DATA",    "PROJECTS"};
  if (!is_path) return std::nullopt;
  if (name == "SLURM_SUBMIT_DIR" || name == "PWD") return ".";
  if (std::find(kFolders.begin(), kFolders.end(), name) == kFolders.end()) return std::nullopt;
  return target_.environment ? target_.environment(name) : std::nullopt;
}

std::optional<std::string> WordExpander::text_of(const bash::Word& word, bool is_path) const {
  std::string text;
  for (const bash::WordPiece& piece : word.pieces) {
    if (piece.kind == bash::PieceKind::literal) {
      if (needs_shell(piece.text, piece.is_quoted)) return std::nullopt;
      const bool has_tilde = text.empty() && !piece.is_quoted && piece.text.starts_with('~');
      if (has_tilde && piece.text.size() > 1 && piece.text[1] != '/') return std::nullopt;
      if (has_tilde) {
        const auto home = target_.environment ? target_.environment("HOME") : std::nullopt;
        if (!home) return std::nullopt;
        text += *home + piece.text.substr(1);
      } else {
        text += piece.text;
      }
    } else if (piece.kind == bash::PieceKind::variable && piece.operation.empty()) {
      auto value = constant(piece.text, piece.span.begin);
      if (!value) value = from_environment(piece.text, is_path);
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

std::optional<std::string> WordExpander::literal(const bash::Word& word) const {
  return text_of(word, false);
}

std::optional<std::string> WordExpander::path(const bash::Word& word) const {
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

}  // namespace stoker::draft

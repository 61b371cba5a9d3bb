#include "manual/command.h"

#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "stoker/text.h"

namespace stoker::manual {
namespace {

constexpr std::array<std::string_view, 14> kFilePlaceholders = {
    "FILE",    "PATH",  "JOB",    "SCRIPT", "LOG",   "SOURCE", "TARGET",
    "DATASET", "FIRST", "SECOND", "OUT",    "STUDY", "SWEEP",  "TASKS"};
constexpr std::array<std::string_view, 3> kFolderPlaceholders = {"DIR", "FOLDER", "ATTEMPT"};

bool is_literal(std::string_view word) {
  return !word.empty() && word.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == word.npos;
}

// "data" of "data pack"; empty for a command without a group.
std::string_view group_of(const CommandText& command) {
  const std::size_t space = command.name.find(' ');
  return space == std::string::npos ? std::string_view() : std::string_view(command.name).substr(0, space);
}

// "-j, --jobs N".
std::string row_head(const OptionText& option) {
  std::string head;
  for (std::string_view flag : flags_of(option)) head += (head.empty() ? "" : ", ") + std::string(flag);
  return option.takes_value() ? head + " " + option.value_name : head;
}

}  // namespace

ValueHint hint_of(std::string_view placeholder) {
  ValueHint hint;
  const std::vector<std::string_view> words = split(placeholder, '|');
  for (const std::string_view word : words) {
    if (std::ranges::find(kFilePlaceholders, word) != kFilePlaceholders.end()) hint.files = true;
    if (std::ranges::find(kFolderPlaceholders, word) != kFolderPlaceholders.end()) hint.folders = true;
    if (word == "RUN") hint.runs = true;
    if (words.size() > 1 && is_literal(word)) hint.choices.emplace_back(word);
  }
  return hint;
}

std::vector<std::string_view> flags_of(const OptionText& option) { return split(option.names, ','); }

std::string usage_text(const CommandText& command) {
  std::string text = "stoker " + command.name;
  for (const ArgumentText& argument : command.arguments) {
    const std::string shown = argument.name + (argument.is_list ? "..." : "");
    text += argument.is_required ? " " + shown : " [" + shown + "]";
  }
  text += " [options]";
  if (command.rest) text += " -- " + command.rest->name + "...";
  return text;
}

std::string help_text(const CommandText& command) {
  std::string text = format("{}\n\nUsage: {}\n\n", command.summary, usage_text(command));
  std::vector<std::pair<std::string, std::string>> rows;
  for (const ArgumentText& argument : command.arguments) rows.emplace_back(argument.name, argument.what);
  if (command.rest) rows.emplace_back(command.rest->name, command.rest->what);
  for (const OptionText& option : command.options) {
    std::string what = option.what;
    if (option.is_repeatable) what += " (may be repeated)";
    if (!option.shown_default.empty()) what += format(" [{}]", option.shown_default);
    rows.emplace_back(row_head(option), std::move(what));
  }
  std::size_t widest = 0;
  for (const auto& row : rows) widest = std::max(widest, row.first.size());
  for (const auto& [head, what] : rows) text += format("  {:<{}}  {}\n", head, widest, what);
  if (!command.examples.empty()) text += "\nExample:\n";
  for (const std::string& example : command.examples) text += format("  {}\n", example);
  return text;
}

std::vector<CommandWord> words_after(const ProgramText& program, std::string_view group) {
  std::vector<CommandWord> words;
  for (const CommandText& command : program.commands) {
    const std::string_view its_group = group_of(command);
    if (!group.empty()) {
      if (its_group == group) words.push_back({command.name.substr(group.size() + 1), command.headline});
      continue;
    }
    if (its_group.empty()) {
      words.push_back({command.name, command.headline});
      continue;
    }
    const std::string verb = command.name.substr(its_group.size() + 1);
    const auto known = std::ranges::find(words, its_group, &CommandWord::name);
    if (known == words.end()) {
      words.push_back({std::string(its_group), verb});
    } else {
      known->headline += ", " + verb;
    }
  }
  return words;
}

std::vector<std::string> verbs_of_command(const ProgramText& program, std::string_view name) {
  std::vector<std::string> verbs;
  if (std::ranges::find(program.commands, name, &CommandText::name) == program.commands.end()) return verbs;
  for (const CommandWord& word : words_after(program, name)) verbs.push_back(word.name);
  return verbs;
}

std::vector<std::string> groups_of(const ProgramText& program) {
  std::vector<std::string> groups;
  for (const CommandText& command : program.commands) {
    const std::string_view group = group_of(command);
    if (!group.empty() && std::ranges::find(groups, group) == groups.end()) groups.emplace_back(group);
  }
  return groups;
}

}  // namespace stoker::manual

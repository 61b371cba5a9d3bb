#include "cli/remote/shown_commands.h"

#include <algorithm>

namespace stoker::cli {
namespace {

constexpr std::string_view kProgram = "stoker ";
constexpr std::string_view kCommands[] = {"cancel", "explain", "fetch",  "logs",   "profile", "report",
                                          "rerun",  "resume",  "status", "submit", "top",     "wait"};

bool is_word(char c) { return (c >= 'a' && c <= 'z') || c == '-' || c == '_'; }

bool starts_command(std::string_view before) {
  return before.empty() || std::string_view(" \n\t`'\"(").find(before.back()) != std::string_view::npos;
}

}  // namespace

std::span<const std::string_view> commands_with_host() { return kCommands; }

std::string with_host_options(std::string_view text, std::string_view options) {
  std::string shown;
  std::size_t copied = 0;
  for (std::size_t at = text.find(kProgram); at != std::string_view::npos; at = text.find(kProgram, at + 1)) {
    const std::size_t begin = at + kProgram.size();
    std::size_t end = begin;
    while (end < text.size() && is_word(text[end])) ++end;
    if (!starts_command(text.substr(0, at)) ||
        !std::binary_search(std::begin(kCommands), std::end(kCommands), text.substr(begin, end - begin)))
      continue;
    shown.append(text.substr(copied, end - copied)).append(" ").append(options);
    copied = end;
  }
  return shown.append(text.substr(copied));
}

}  // namespace stoker::cli

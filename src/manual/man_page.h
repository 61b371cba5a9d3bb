// Man pages, in the macros of man(7). The bytes depend on the commands and the version only. Thread-safe: no
// state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "manual/command.h"

namespace stoker::manual {

/// stoker(1): all commands, exit status, files and environment.
std::string program_page(const ProgramText& program);
/// stoker-data-pack(1) for the command "data pack".
std::string command_page(const CommandText& command, std::string_view version);

struct PageFile {
  std::string name;  ///< "stoker-data-pack.1"
  std::string text;
};
/// The page of the program, then one for each command.
std::vector<PageFile> all_pages(const ProgramText& program);

/// `text` for troff: characters with a meaning in requests, quotes and all characters beyond ASCII are
/// escaped.
std::string troff_text(std::string_view text);

}  // namespace stoker::manual

// `stoker manual [COMMAND]`: docs/commands/manual.md
#include <algorithm>

#include "base/file.h"
#include "base/json/json.h"
#include "base/language/counted.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "manual/man_page.h"

namespace stoker::cli {
namespace {

int print_page(const std::string& name, const manual::ProgramText& program, Output& out) {
  const auto found = std::ranges::find(program.commands, name, &manual::CommandText::name);
  if (!name.empty() && found == program.commands.end()) {
    std::vector<std::string_view> names;
    for (const CommandEntry& entry : commands()) names.push_back(entry.name);
    return out.fail(invalid("manual: unknown command '{}'{}", printable(name), suggestion(name, names))
                        .cure("stoker --help"));
  }
  const std::string text =
      name.empty() ? manual::program_page(program) : manual::command_page(*found, program.version);
  out.raw(text);
  out.json(json_text(nlohmann::ordered_json{{"command", name}, {"page", text}}));
  return exit_code::kOk;
}

Status write_pages(const Path& folder, const std::vector<manual::PageFile>& pages) {
  STOKER_RETURN_IF_ERROR(make_directories(folder));
  for (const manual::PageFile& page : pages)
    STOKER_RETURN_IF_ERROR(write_file(folder / page.name, page.text));
  return {};
}

int write_all(const std::string& folder, const manual::ProgramText& program, Output& out) {
  const std::vector<manual::PageFile> pages = manual::all_pages(program);
  if (const Status written = write_pages(folder, pages); !written.ok()) return out.fail(written);
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  for (const manual::PageFile& page : pages) files.push_back(page.name);
  out.line("{}: {}", printable(folder), counted(pages.size(), "man page"));
  out.json(json_text(nlohmann::ordered_json{{"folder", printable(folder)}, {"files", files}}));
  return exit_code::kOk;
}

}  // namespace

int manual_page(std::span<const std::string> words, Output& out) {
  std::vector<std::string> command;
  std::string folder;
  Arguments arguments("manual", "Print the man page of a command, or write all man pages.");
  arguments.positional_list("COMMAND", &command, "Command, as in data pack (default: stoker itself)");
  arguments.option("--all", &folder, "FOLDER", "Write stoker.1 and a page per command to this folder");
  arguments.example("stoker manual data pack | man -l -");
  arguments.example("stoker manual --all ~/.local/share/man/man1");
  if (const auto code = arguments.parse(words, out)) return *code;
  if (folder.empty()) return print_page(join(command, " "), program_text(), out);
  if (!command.empty()) return out.fail(invalid("manual: --all writes the pages of all commands"));
  return write_all(folder, program_text(), out);
}

}  // namespace stoker::cli

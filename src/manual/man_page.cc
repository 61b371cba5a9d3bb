#include "manual/man_page.h"

#include <algorithm>
#include <cstdint>

#include "base/exit_code.h"
#include "manual/reference.h"
#include "stoker/text.h"

namespace stoker::manual {
namespace {

// The escape of an ASCII character that troff would interpret or draw as another character.
std::string_view ascii_escape(char c) {
  switch (c) {
    case '\\':
      return "\\(rs";
    case '-':
      return "\\-";
    case '\'':
      return "\\(aq";
    case '`':
      return "\\(ga";
    case '"':
      return "\\(dq";
    case '^':
      return "\\(ha";
    case '~':
      return "\\(ti";
    default:
      return {};
  }
}

// "\[u2192]" for the arrow. REQUIRES: valid UTF-8 of several bytes.
std::string unicode_escape(std::string_view character) {
  constexpr unsigned kFirstMasks[] = {0, 0, 0x1F, 0x0F, 0x07};
  std::uint32_t code = static_cast<unsigned char>(character[0]) & kFirstMasks[character.size()];
  for (const char c : character.substr(1)) code = code << 6 | (static_cast<unsigned char>(c) & 0x3Fu);
  return format("\\[u{:04X}]", code);
}

std::string bold(std::string_view text) { return "\\fB" + troff_text(text) + "\\fR"; }

std::string italic(std::string_view text) { return "\\fI" + troff_text(text) + "\\fR"; }

// One line of text. At its beginning, a dot would be a request.
std::string text_line(std::string_view text) {
  return (text.starts_with('.') ? "\\&" : "") + troff_text(text) + "\n";
}

// The macro of a described item; `head` is escaped.
std::string item(const std::string& head, std::string_view text) {
  return ".TP\n" + head + "\n" + text_line(text);
}

std::string page_name(std::string_view command) {
  std::string name = command.empty() ? "stoker" : "stoker-" + std::string(command);
  std::ranges::replace(name, ' ', '-');
  return name;
}

std::string page_start(std::string_view command, std::string_view headline, std::string_view version) {
  const std::string name = page_name(command);
  std::string upper = name;
  for (char& c : upper) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return format(".TH \"{}\" 1 \"\" \"Stoker {}\" \"Stoker manual\"\n.SH NAME\n{} \\- {}\n", troff_text(upper),
                troff_text(version), troff_text(name), troff_text(headline));
}

std::string option_head(const OptionText& option) {
  std::string head;
  for (const std::string_view flag : flags_of(option)) head += (head.empty() ? "" : ", ") + bold(flag);
  return option.takes_value() ? head + " " + italic(option.value_name) : head;
}

std::string sentence(std::string_view text) { return std::string(text) + (text.ends_with('.') ? "" : "."); }

// Help, choices and default as sentences.
std::string option_body(const OptionText& option) {
  std::string text = sentence(option.what);
  if (!option.value.choices.empty()) text += " Values: " + join(option.value.choices, ", ") + ".";
  if (option.is_repeatable) text += " May be repeated.";
  if (!option.shown_default.empty()) text += " Default: " + option.shown_default + ".";
  return text;
}

std::string synopsis(const CommandText& command) {
  std::string text = ".SH SYNOPSIS\n" + bold("stoker " + command.name);
  for (const ArgumentText& argument : command.arguments) {
    const std::string shown = italic(argument.name) + (argument.is_list ? " ..." : "");
    text += argument.is_required ? " " + shown : " [" + shown + "]";
  }
  text += " [" + italic("options") + "]";
  if (command.rest) text += " " + bold("--") + " " + italic(command.rest->name) + " ...";
  return text + "\n";
}

std::string rows(std::string_view title, std::span<const ReferenceRow> all) {
  std::string text = title.empty() ? "" : format(".SH {}\n", title);
  for (const ReferenceRow& row : all) text += item(bold(row.name), row.what);
  return text;
}

}  // namespace

std::string troff_text(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    const std::string_view rest = text.substr(i);
    const std::size_t length = std::max<std::size_t>(1, utf8_length(rest));
    const std::string_view escape = ascii_escape(rest[0]);
    if (length > 1) {
      out += unicode_escape(rest.substr(0, length));
    } else if (!escape.empty()) {
      out += escape;
    } else {
      // A line break would begin a line that troff may take for a request.
      out += static_cast<unsigned char>(rest[0]) < 0x20 || static_cast<unsigned char>(rest[0]) > 0x7E
                 ? ' '
                 : rest[0];
    }
    i += length;
  }
  return out;
}

std::string program_page(const ProgramText& program) {
  std::string text =
      page_start("", "run training jobs on this machine or on a Slurm cluster", program.version);
  text += ".SH SYNOPSIS\n" + bold("stoker") + " " + italic("COMMAND") + " [" + italic("arguments") + "] [" +
          italic("options") + "]\n";
  text += ".SH DESCRIPTION\n" + text_line(
                                    "Stoker packs training data, launches jobs, stores checkpoints and "
                                    "explains failures. Each command has a page: stoker-COMMAND(1).");
  text += ".SH COMMANDS\n";
  for (const CommandText& command : program.commands)
    text += item(bold("stoker " + command.name), sentence(command.headline));
  text += ".SH EXIT STATUS\n";
  for (const exit_code::ExitCodeText& code : exit_code::texts())
    text += item(bold(std::to_string(code.code)), sentence(code.meaning));
  text += rows("FILES", reference_files());
  text += rows("ENVIRONMENT", command_variables());
  text += ".PP\n" + text_line("Each rank of a run has these variables:");
  text += rows("", rank_variables());
  text += ".SH SEE ALSO\n";
  std::string pages;
  for (const CommandText& command : program.commands)
    pages += (pages.empty() ? "" : ",\n") + bold(page_name(command.name)) + "(1)";
  return text + pages + "\n";
}

std::string command_page(const CommandText& command, std::string_view version) {
  std::string text = page_start(command.name, command.headline, version) + synopsis(command);
  text += ".SH DESCRIPTION\n" + text_line(command.summary);
  if (!command.arguments.empty() || command.rest) text += ".SH ARGUMENTS\n";
  for (const ArgumentText& argument : command.arguments)
    text += item(italic(argument.name), sentence(argument.what));
  if (command.rest) text += item(italic(command.rest->name), sentence(command.rest->what));
  if (!command.options.empty()) text += ".SH OPTIONS\n";
  for (const OptionText& option : command.options) text += item(option_head(option), option_body(option));
  if (!command.examples.empty()) {
    text += ".SH EXAMPLES\n.nf\n";
    for (const std::string& example : command.examples) text += text_line(example);
    text += ".fi\n";
  }
  return text + ".SH SEE ALSO\n" + bold("stoker") + "(1)\n";
}

std::vector<PageFile> all_pages(const ProgramText& program) {
  std::vector<PageFile> pages = {{page_name("") + ".1", program_page(program)}};
  for (const CommandText& command : program.commands)
    pages.push_back({page_name(command.name) + ".1", command_page(command, program.version)});
  return pages;
}

}  // namespace stoker::manual

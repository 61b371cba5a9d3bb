// Detects placeholders in a text. Texts are unquoted, with '$' for each variable and command. Parts of the
// rule placeholder; internal to this folder. Thread-safe: no state.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace stoker::script_lint {

constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
/// A letter or a digit.
constexpr bool is_word(char c) { return is_letter(c) || (c >= '0' && c <= '9'); }

/// A marker of a template engine: "{{ account }}", "@ACCOUNT@", "##N##", "%%time%%".
std::optional<std::string> template_marker(std::string_view text);

/// A placeholder in a path: "/path/to/data", "your_env", "/data/xxx/a", "...", "/data/<user>/set", "{DIR}/a".
std::optional<std::string> placeholder_part(std::string_view text);

/// A phrase in place of a value: "PATH TO THE CONTAINER", "your wandb key", "<work directory>", "[your key]".
std::optional<std::string> placeholder_phrase(std::string_view text);

/// An instruction to the reader: "copy the list to your folder, and give its place here".
bool is_instruction(std::string_view text);

/// A self-describing placeholder: "CHANGEME", "TIME_PLACEHOLDER".
std::optional<std::string> todo_marker(std::string_view text);

/// "xxx" or "XXXX" as a part of a name, as in def-xxxx and xxx_usr_prod.
std::optional<std::string> x_placeholder(std::string_view text);

/// "<username>", "<your account>": a name in angle brackets.
std::optional<std::string> angle_placeholder(std::string_view text);

/// "{account}": an unexpanded template. Other rules handle "${NAME}".
std::optional<std::string> brace_placeholder(std::string_view text);

/// '<TOKEN>' and !COMMAND as a whole word.
std::optional<std::string> whole_word_placeholder(std::string_view text);

/// A generic name made only of words such as "my", "account", "name". A single word may be a real name unless
/// it is in capitals.
bool is_generic_name(std::string_view text);

}  // namespace stoker::script_lint

// What in a text says that it is no name but the place for one, which nobody has put in yet. Texts are as the
// shell leaves them: without quotes, each variable and command as one '$'. Parts of the rule placeholder;
// internal to this folder. Thread-safe: no state.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace stoker::explain {

constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
/// A letter or a digit.
constexpr bool is_word(char c) { return is_letter(c) || (c >= '0' && c <= '9'); }

/// Between the marks of a program that fills forms in: "{{ account }}", "@ACCOUNT@", "##N##", "%%time%%".
std::optional<std::string> form_mark(std::string_view text);

/// A part of a path, or all of it: "/path/to/data", "your_env", "/data/xxx/a", "...", "/data/<user>/set",
/// "{DIR}/a".
std::optional<std::string> blank_part(std::string_view text);

/// Words to the reader where a value should be: "PATH TO THE CONTAINER", "your wandb key", "<work
/// directory>",
/// "[your key]".
std::optional<std::string> blank_phrase(std::string_view text);

/// A sentence that tells the reader what to put in: "copy the list to your folder, and give its place here".
bool is_instruction(std::string_view text);

/// A value that says itself that it is none: "CHANGEME", "TIME_PLACEHOLDER".
std::optional<std::string> to_do(std::string_view text);

/// Letters that stand for others: "xxx", "XXXX" as a part of a name, as in def-xxxx and xxx_usr_prod.
std::optional<std::string> crosses(std::string_view text);

/// "<username>", "<your account>": a name in angle brackets.
std::optional<std::string> angle_name(std::string_view text);

/// "{account}": what a program that writes scripts would have filled in. "${NAME}" is another rule's.
std::optional<std::string> in_braces(std::string_view text);

/// '<TOKEN>' and !COMMAND as a whole word.
std::optional<std::string> whole_name(std::string_view text);

/// What something is called, and not its name: made of words such as "my", "account", "name" alone. One such
/// word may be a name, unless it is in capitals.
bool is_called_by_its_kind(std::string_view text);

}  // namespace stoker::explain

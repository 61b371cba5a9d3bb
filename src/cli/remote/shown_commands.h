// Commands in the output of a remote machine, as the user must type them on this one. Functions without
// state.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace stoker::cli {

/// The commands that have --host, sorted.
std::span<const std::string_view> commands_with_host();

/// `text` with `options` ("--host login:exp") after each `stoker COMMAND` in it that has --host and starts
/// the text or follows a space, a backtick, a quote or a bracket: "stoker wait last" becomes "stoker wait
/// --host login:exp last".
std::string with_host_options(std::string_view text, std::string_view options);

}  // namespace stoker::cli

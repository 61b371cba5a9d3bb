#include "script_lint/rules/commands/modules.h"

#include "stoker/text.h"

namespace stoker::script_lint {
namespace {

// Subcommands of module in Lmod and in Environment Modules; words with - are options.
constexpr std::string_view kModuleVerbs[] = {"load",        "add",         "try-load",    "try-add",
                                             "load-any",    "unload",      "rm",          "del",
                                             "delete",      "purge",       "list",        "li",
                                             "ls",          "avail",       "av",          "spider",
                                             "overview",    "ov",          "use",         "unuse",
                                             "swap",        "switch",      "sw",          "show",
                                             "display",     "help",        "whatis",      "keyword",
                                             "key",         "k",           "save",        "s",
                                             "restore",     "r",           "reset",       "refresh",
                                             "reload",      "update",      "init",        "is-loaded",
                                             "is-avail",    "is-used",     "is-saved",    "clear",
                                             "apropos",     "search",      "test",        "savelist",
                                             "sl",          "saveshow",    "saverm",      "describe",
                                             "mcc",         "disable",     "tablelist",   "path",
                                             "paths",       "setenv",      "getenv",      "unsetenv",
                                             "pushenv",     "source",      "config",      "edit",
                                             "state",       "sh-to-mod",   "category",    "load_any",
                                             "initadd",     "initlist",    "initclear",   "initrm",
                                             "initswitch",  "initprepend", "append-path", "prepend-path",
                                             "remove-path", "stash",       "stashpop",    "stashlist",
                                             "stashrm",     "stashshow",   "stashclear",  "switchto",
                                             "aliases",     "mod-to-sh",   "info-loaded", "isavail",
                                             "isloaded",    "initload",    "l",           "unl",
                                             "get",         "find",        "initpurge",   "lint",
                                             "cachebuild",  "cacheclear"};

}  // namespace

void find_module_words(const ProgramCall& call, std::string_view first, const Script& script,
                       FindingReport& report) {
  if (call.program != "module" || call.context.is_substituted) return;
  const bool is_name = first.find('/') != std::string_view::npos && first.find_first_of("$./`\"'") > 0 &&
                       !is_one_of(first, kModuleVerbs) && !first.starts_with('-');
  if (is_name) {
    report.replace({call.typed[0]->span.begin, call.typed[0]->span.begin},
                   message("module has no command {}; did you mean module load?", printable(first)), "load ");
  } else if (first == "load" && call.typed.size() > 2 && script.at(call.typed[1]->span) == "module") {
    const bool is_whole = script.at(call.typed[2]->span) == "load";
    report.replace(
        {call.typed[1]->span.begin, call.typed[is_whole && call.typed.size() > 3 ? 3 : 2]->span.begin},
        message("{}: no such program; did you mean {}?", "module load module", "module load"), "");
  }
}

}  // namespace stoker::script_lint

// `stoker check SCRIPT`: lints a user's batch script. Called by check.cc.
#pragma once

#include <string>

#include "base/language/translator.h"
#include "cli/output.h"

namespace stoker::cli {

struct ScriptCheck {
  std::string script;
  std::string site = "auto";
  bool fixes = false;
  bool fixes_in_place = false;
  bool sarif = false;
  Translator words;  ///< language of the findings
};

/// Detects a batch script by its content or extension.
bool is_batch_script(const std::string& word);

/// Prints the findings, fixes the script if requested, and returns the exit code.
int check_script(const ScriptCheck& check, Output& out);

/// Prints every rule with its level and reason.
int print_rules(const Translator& words, Output& out);

}  // namespace stoker::cli

// `stoker check SCRIPT`: a batch script of people's own. Called by the command's own file.
#pragma once

#include <string>

#include "base/language/words.h"
#include "cli/output.h"

namespace stoker::cli {

struct ScriptCheck {
  std::string script;
  std::string site = "auto";
  bool fixes = false;
  bool fixes_in_place = false;
  bool sarif = false;
  Words words;  ///< that findings are told in
};

/// Whether the word names a batch script, by what the file holds or how it is called.
bool names_batch_script(const std::string& word);

/// Prints what is wrong with the script, mends it when asked to, and returns the exit code.
int check_script(const ScriptCheck& check, Output& out);

/// Every rule with its level and reason.
int print_rules(const Words& words, Output& out);

}  // namespace stoker::cli

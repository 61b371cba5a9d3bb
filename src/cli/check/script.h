// `stoker check SCRIPT`: lints a user's batch script. Called by check.cc.
#pragma once

#include <string>
#include <vector>

#include "base/language/translator.h"
#include "cli/output.h"
#include "script_lint/lint.h"

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

/// The findings of the script for the cluster of this machine. `options`: of sbatch, which override the
/// script's.
Result<script_lint::LintResult> lint_for_submission(const std::string& script,
                                                    const std::vector<std::string>& options);

/// Prints every rule with its level and reason.
int print_rules(const Translator& words, Output& out);

}  // namespace stoker::cli

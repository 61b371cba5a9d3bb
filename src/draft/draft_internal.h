// The state of a conversion. Internal to this folder.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "draft/draft.h"
#include "script_lint/inner_command.h"
#include "script_lint/rule.h"
#include "script_lint/script.h"

namespace stoker::draft {

using script_lint::Context;
using script_lint::Directive;
using script_lint::flatten;
using script_lint::GpuRequest;
using script_lint::is_launcher;
using script_lint::is_local_path;
using script_lint::is_one_of;
using script_lint::is_python;
using script_lint::placeholder_in;
using script_lint::ProgramCall;
using script_lint::read_script;
using script_lint::Script;
using script_lint::SlurmRequest;
using script_lint::VariableSetting;

/// A statement of the outermost list: commands joined by && and ||.
struct Unit {
  bash::Span span;  ///< up to the next unit
  std::uint32_t line = 1;
  bool is_simple = true;                  ///< no loop, condition, group or function
  std::vector<const ProgramCall*> calls;  ///< including calls in its here-documents
  std::vector<const VariableSetting*> settings;
};

/// The job file under construction. Values of `groups` are YAML.
struct JobFileDraft {
  std::optional<std::string> working_directory;
  std::map<std::string, std::vector<std::pair<std::string, std::string>>> groups;
  std::vector<std::string> modules;
  std::optional<std::string> conda;
  std::optional<std::string> venv;
  std::optional<std::string> wheelhouse;
  std::vector<std::pair<std::string, std::string>> variables;
  std::vector<std::pair<std::string, std::string>> references;  ///< variables that refer to a key
  std::string created_venv;  ///< the folder that virtualenv creates in the job
  std::vector<std::string> requirement_files;
  std::vector<std::string> packages;
  std::vector<std::string> unpack, copy, stage_out;
  std::vector<std::pair<std::string, std::string>>
      path_rewrites;               ///< text in the script → text for the ranks
  std::vector<std::string> extra;  ///< options for sbatch
  std::vector<Unconverted> unconverted;

  void set(const std::string& group, std::string key, std::string yaml) {
    groups[group].emplace_back(std::move(key), std::move(yaml));
  }
};

}  // namespace stoker::draft

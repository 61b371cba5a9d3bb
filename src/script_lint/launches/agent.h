// A call of torchrun, accelerate launch or deepspeed: the number of machines and processes that it expects,
// and how its copies find each other. Internal to this room. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "script_lint/launches/task_layout.h"
#include "script_lint/script.h"
#include "slurm/allocation.h"

namespace stoker::script_lint {

enum class AgentKind { torchrun, accelerate, deepspeed };

/// The value of one option, as written; nothing if it is not given.
using OptionText = std::optional<std::string>;

struct Agent {
  AgentKind kind = AgentKind::torchrun;
  std::string name;  ///< "torchrun", "accelerate", "deepspeed", "python -m torch.distributed.run"
  std::vector<std::string> options;  ///< with variables that hold several words split
  std::vector<std::string> program;  ///< the training script and its arguments; may be empty
  bool is_complete = true;           ///< false: variables with unknown options
  bool is_standalone = false;
  OptionText machines;             ///< --nnodes, --num_machines; "1" by default
  OptionText machine_rank;         ///< --node-rank, --machine_rank
  OptionText address;              ///< --master-addr, --main_process_ip, or the rendezvous endpoint
  OptionText processes;            ///< per machine; of accelerate on all machines together
  bool has_dynamic_ranks = false;  ///< the machines agree on their ranks: a rendezvous backend except static
};

/// Variables of a script that called this one, and where its configuration files are.
struct AgentContext {
  const Script& script;
  const std::map<std::string, std::string>* outer = nullptr;  ///< variables of the calling script
  Path directory;                                             ///< base of relative paths
  slurm::Lookup environment;                                  ///< HOME, for the configuration of accelerate
  std::optional<double> as_of = {};                           ///< like LintContext::as_of
};

/// Whether the file was modified after `as_of` (Unix seconds), so that its earlier content is unknown.
bool has_changed_since(const Path& file, std::optional<double> as_of);

/// The call as an agent; nothing for other programs.
std::optional<Agent> read_agent(const ProgramCall& call, const AgentContext& context);

/// The variable of a word that is nothing else, with or without quotes; null for other words.
const bash::WordPiece* only_variable(const bash::Word& word);

/// Expands $NAME with the values of `variables`.
std::string expand_variables(const std::string& text, const std::map<std::string, std::string>& variables);

}  // namespace stoker::script_lint

// What a batch script asks of Slurm in its #SBATCH lines, put together from the options that mean the same.
// Used by the rules over people's own scripts. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "explain/bash/syntax.h"
#include "slurm/script/asked.h"
#include "slurm/script/own_script.h"

namespace stoker::explain {

/// An option with its place in the script.
struct Directive {
  slurm::OwnOption option;
  bash::Span span;
  bash::Span value;
};

/// Whether that option's value is a text for people alone: "--comment". Slurm takes whatever stands there.
bool is_for_people(std::string_view option);

/// GPUs as one option names them: "gpu:v100:4".
struct GpuRequest {
  const Directive* directive = nullptr;
  std::string type;   ///< may be empty
  std::string count;  ///< as it stands there, "1" where there is none
};

struct Request {
  std::vector<Directive> directives;  ///< that sbatch sees, in order
  std::vector<Directive> late;        ///< on #SBATCH lines behind the first command

  /// The one that counts, by its long name; null when there is none.
  const Directive* find(std::string_view name) const;
  /// What they ask for together. This must outlive it.
  slurm::Asked asked() const;

  std::optional<std::uint64_t> number(std::string_view name) const { return asked().number(name); }
  std::uint64_t nodes() const { return asked().nodes(); }
  std::optional<std::uint64_t> tasks_per_node() const { return asked().tasks_per_node(); }
  std::uint64_t tasks() const { return asked().tasks(); }
  std::optional<std::uint64_t> gpus_per_node() const { return asked().gpus_per_node(); }
  std::vector<GpuRequest> gpus() const;
  std::optional<Duration> time() const { return asked().time(); }
  std::uint64_t array_tasks() const { return asked().array_tasks(); }
  /// No other job shares its nodes.
  bool has_whole_nodes() const;
};

/// Reads the lines of a script. `first_command` is where the first thing that is no comment begins.
Request read_request(std::string_view text, const std::vector<bash::Comment>& comments,
                     std::size_t first_command);

}  // namespace stoker::explain

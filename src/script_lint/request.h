// The resources that a batch script requests in its #SBATCH lines, combined from equivalent options. Used by
// the script rules. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bash/syntax.h"
#include "slurm/script/requested_resources.h"
#include "slurm/script/user_script.h"
#include "stoker/time.h"

namespace stoker::script_lint {

/// An option and its position in the script.
struct Directive {
  slurm::SbatchOption option;
  bash::Span span;
  bash::Span value;
};

/// Whether the value is free text such as "--comment", which Slurm does not interpret.
bool is_free_text(std::string_view option);

/// A GPU request of one option: "gpu:v100:4".
struct GpuRequest {
  const Directive* directive = nullptr;
  std::string type;   ///< may be empty
  std::string count;  ///< as written; "1" by default
};

struct SlurmRequest {
  std::vector<Directive> directives;  ///< options that sbatch reads, in order
  std::vector<Directive> ignored;     ///< #SBATCH lines after the first command, which sbatch ignores

  /// The effective option by its long name; null without one.
  const Directive* find(std::string_view name) const;
  /// The combined request. This must outlive it.
  slurm::RequestedResources asked() const;

  std::optional<std::uint64_t> number(std::string_view name) const { return asked().number(name); }
  std::uint64_t nodes() const { return asked().nodes(); }
  std::optional<std::uint64_t> tasks_per_node() const { return asked().tasks_per_node(); }
  std::uint64_t tasks() const { return asked().tasks(); }
  std::optional<std::uint64_t> gpus_per_node() const { return asked().gpus_per_node(); }
  std::vector<GpuRequest> gpus() const;
  std::optional<Duration> time() const { return asked().time(); }
  std::uint64_t array_tasks() const { return asked().array_tasks(); }
  /// Whether the job has its nodes exclusively.
  bool has_whole_nodes() const;
};

/// Replaces options of the script by options of the command line ("--nodes=2"). Ignores malformed ones.
void override_options(const std::vector<std::string>& options, SlurmRequest& request);

/// Parses the options of a script. `first_command`: offset of the first text that is no comment.
SlurmRequest read_request(std::string_view text, const std::vector<bash::Comment>& comments,
                          std::size_t first_command);

}  // namespace stoker::script_lint

// The state at the start of a run, in `capsule/`: code, environment, data, execution. The caller collects the
// values; this file writes and reads them, and hides secrets among the variables and packages. Every part is
// published by rename, so it is either complete or absent. Format: docs/formats/run.md#capsule.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "record/run_folder.h"
#include "stoker/status.h"

namespace stoker::record {

/// capsule/code.json, and capsule/code.diff if it exists.
struct CodeInfo {
  std::string root;    ///< root of the work tree; "" outside a repository
  std::string commit;  ///< full id
  std::string branch;
  std::string remote;
  bool dirty = false;
  std::string diff;  ///< uncommitted changes relative to the commit; at most 16 MiB are kept
  std::vector<std::string> untracked;
};

/// capsule/environment.json, and capsule/packages.txt.
struct EnvironmentInfo {
  std::vector<std::pair<std::string, std::string>> programs;   ///< "python" → "3.11.2", "torch" → "2.13.0"
  std::vector<std::pair<std::string, std::string>> variables;  ///< secrets are hidden when written
  std::string packages;                                        ///< in the format of `pip freeze`
};

/// One dataset of capsule/data.json.
struct DataInfo {
  std::string name;    ///< key under data: in the job file
  std::string source;  ///< path
  std::string split;
  std::string version;  ///< of the manifest
  std::uint64_t samples = 0;
  std::uint64_t shards = 0;
  std::uint64_t bytes = 0;
};

/// One node in capsule/execution.json.
struct NodeInfo {
  std::string host;
  std::string kernel;
  std::string system;  ///< "Debian GNU/Linux 12 (bookworm)"
  std::string cpu;     ///< model name
  int cores = 0;       ///< available to this run
  std::uint64_t memory_bytes = 0;
  std::vector<std::string> gpus;
  std::string driver;
};

Status write_code(const RunFolder& run, const CodeInfo& facts);
Status write_environment(const RunFolder& run, const EnvironmentInfo& facts);
Status write_data(const RunFolder& run, const std::vector<DataInfo>& facts);
Status write_execution(const RunFolder& run, const std::vector<NodeInfo>& facts);

/// The parts of the capsule that exist; a damaged part is absent and listed in `problems`.
struct Capsule {
  std::optional<CodeInfo> code;
  std::optional<EnvironmentInfo> environment;
  std::optional<std::vector<DataInfo>> data;
  std::optional<std::vector<NodeInfo>> execution;
  std::vector<std::string> problems;
};
Capsule read_capsule(const RunFolder& run);

}  // namespace stoker::record

// What was true when a run started, in `capsule/`: code, environment, data, execution. The caller gathers and
// passes values; this writes and reads them. Every part is published by rename, so a part is whole or absent.
// Format: docs/formats/run.md#capsule.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "record/run_folder.h"

namespace stoker::record {

/// capsule/code.json, and capsule/code.diff when there is one.
struct CodeFacts {
  std::string root;    ///< top of the work tree; "" outside a repository
  std::string commit;  ///< full id
  std::string branch;
  std::string remote;
  bool dirty = false;
  std::string diff;  ///< uncommitted changes against the commit; at most 16 MiB are kept
  std::vector<std::string> untracked;
};

/// capsule/environment.json, and capsule/packages.txt.
struct EnvironmentFacts {
  std::vector<std::pair<std::string, std::string>> programs;  ///< "python" → "3.11.2", "torch" → "2.13.0"
  std::vector<std::pair<std::string, std::string>>
      variables;         ///< names with secrets are the caller's to mask
  std::string packages;  ///< as `pip freeze` prints them
};

/// One dataset of capsule/data.json.
struct DataFacts {
  std::string name;    ///< key under data: in the job file
  std::string source;  ///< path
  std::string split;
  std::string version;  ///< of the manifest
  std::uint64_t samples = 0;
  std::uint64_t shards = 0;
  std::uint64_t bytes = 0;
};

/// One node of capsule/execution.json.
struct NodeFacts {
  std::string host;
  std::string kernel;
  std::string system;  ///< "Debian GNU/Linux 12 (bookworm)"
  std::string cpu;     ///< model name
  int cores = 0;       ///< that this run may use
  std::uint64_t memory_bytes = 0;
  std::vector<std::string> gpus;
  std::string driver;
};

Status write_code(const RunFolder& run, const CodeFacts& facts);
Status write_environment(const RunFolder& run, const EnvironmentFacts& facts);
Status write_data(const RunFolder& run, const std::vector<DataFacts>& facts);
Status write_execution(const RunFolder& run, const std::vector<NodeFacts>& facts);

/// What of the capsule is there; a damaged part is absent and named in `problems`.
struct Capsule {
  std::optional<CodeFacts> code;
  std::optional<EnvironmentFacts> environment;
  std::optional<std::vector<DataFacts>> data;
  std::optional<std::vector<NodeFacts>> execution;
  std::vector<std::string> problems;
};
Capsule read_capsule(const RunFolder& run);

}  // namespace stoker::record

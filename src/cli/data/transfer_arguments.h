// `stoker data push` and `stoker data pull`: their options, the transfer, and its report.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cli/arguments.h"
#include "cli/output.h"

namespace stoker::cli {

/// The options of both commands, unparsed.
struct TransferArguments {
  std::string command;  ///< "data push"
  std::string source;
  std::string target;
  std::optional<std::int64_t> streams;
  std::string limit;
  std::string program;
  bool is_dry_run = false;
  bool is_replacing = false;
  bool is_login_node = false;

  /// Declares the options, without the two positional arguments.
  void declare(Arguments& arguments);
};

/// "100MB/s" or "100MB": bytes per second. Invalid, also for zero.
Result<ByteCount> parse_rate(std::string_view command, std::string_view text);

/// Copies and prints. Returns the exit code.
int run_transfer(const TransferArguments& choice, Output& out);

}  // namespace stoker::cli

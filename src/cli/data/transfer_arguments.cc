#include "cli/data/transfer_arguments.h"

#include <array>

#include "base/json/json.h"
#include "base/language/counted.h"
#include "cli/site/sites.h"
#include "transfer/transfer.h"

namespace stoker::cli {
namespace {

constexpr std::int64_t kDefaultStreams = 4;
constexpr std::int64_t kMostStreams = 64;
constexpr std::array<std::string_view, 3> kOutcomes = {"copied", "present", "planned"};

using transfer::Location;
using transfer::TransferOutcome;
using transfer::TransferReport;

// The command line again, for cures.
std::string command_line(const TransferArguments& choice) {
  std::string line =
      format("stoker {} {} {}", choice.command, shell_quote(choice.source), shell_quote(choice.target));
  if (choice.streams) line += format(" --streams {}", *choice.streams);
  if (!choice.limit.empty()) line += " --limit " + shell_quote(choice.limit);
  if (!choice.program.empty()) line += " --host-program " + shell_quote(choice.program);
  if (choice.is_replacing) line += " --replace";
  if (choice.is_login_node) line += " --login-node";
  return line;
}

Result<Location> location_of(const std::string& text, const TransferArguments& choice, Output& out) {
  auto location = transfer::parse_location(text, choice.program);
  if (!location.ok() || !location->host || choice.is_login_node) return location;
  location->transfer_node = transfer_node_for(location->host->host);
  if (!location->transfer_node.empty())
    out.note("{}: connecting to its transfer node {} (--login-node: to the host itself)",
             printable(location->host->host), printable(location->transfer_node));
  return location;
}

std::string rate_of(const TransferReport& report) {
  if (report.seconds <= 0 || report.sent_bytes == 0) return "";
  return format(
      ", {}/s",
      rounded({static_cast<std::uint64_t>(static_cast<double>(report.sent_bytes) / report.seconds)}));
}

void print(const TransferArguments& choice, const TransferReport& report, Output& out) {
  const std::string what = format("{}, {}, version {}", counted(report.shards, "shard"),
                                  rounded({report.bytes}), report.version.substr(0, 8));
  const std::string target = printable(choice.target);
  if (report.outcome == TransferOutcome::present) {
    out.line("{}: has this dataset already ({})", target, what);
  } else if (report.outcome == TransferOutcome::planned) {
    out.line("{}: would be created ({})", target, what);
    out.line("  to send  {}; {} free {}", rounded({report.sent_bytes}), rounded({report.free_bytes}),
             report.free_limited_by);
  } else {
    out.line("{}: {}", target, what);
    out.line("  sent  {}{}; {}", rounded({report.sent_bytes}), rate_of(report),
             counted(static_cast<std::uint64_t>(report.streams), "stream"));
    if (report.found_bytes > 0) out.line("  was there already  {}", rounded({report.found_bytes}));
    out.line("  verified there  {}, by {}", counted(report.files, "file"), report.verified_by);
  }
  if (!report.moved_aside.empty()) out.line("  moved aside  {}", printable(report.moved_aside));
  if (report.ignored > 0)
    out.note("not copied: {} of {}, not part of the dataset",
             counted(report.ignored, "other entry", "other entries"), printable(choice.source));
  if (!report.streams_note.empty())
    out.note("{} of {} streams: {}", report.streams, choice.streams.value_or(kDefaultStreams),
             report.streams_note);
  if (!report.quota_error.empty()) out.note("quota unknown ({})", printable(report.quota_error));
}

std::string to_json(const TransferArguments& choice, const TransferReport& report) {
  return json_text(
      nlohmann::ordered_json{{"outcome", std::string(kOutcomes[static_cast<std::size_t>(report.outcome)])},
                             {"source", printable(choice.source)},
                             {"target", printable(choice.target)},
                             {"folder", printable(report.target)},
                             {"version", report.version},
                             {"shards", report.shards},
                             {"files", report.files},
                             {"bytes", report.bytes},
                             {"sent_bytes", report.sent_bytes},
                             {"found_bytes", report.found_bytes},
                             {"ignored", report.ignored},
                             {"moved_aside", printable(report.moved_aside)},
                             {"verified_by", report.verified_by},
                             {"streams", report.streams},
                             {"free_bytes", report.free_bytes},
                             {"free_limited_by", report.free_limited_by},
                             {"seconds", report.seconds}});
}

Result<transfer::TransferOptions> options_of(const TransferArguments& choice) {
  transfer::TransferOptions options{.command = choice.command,
                                    .limit = {},
                                    .is_dry_run = choice.is_dry_run,
                                    .is_replacing = choice.is_replacing};
  const std::int64_t streams = choice.streams.value_or(kDefaultStreams);
  if (streams < 1 || streams > kMostStreams)
    return invalid("{}: --streams: {} is not between 1 and {}", choice.command, streams, kMostStreams);
  options.streams = static_cast<int>(streams);
  if (!choice.limit.empty()) {
    STOKER_ASSIGN_OR_RETURN(limit, parse_rate(choice.command, choice.limit));
    options.limit = limit;
  }
  return options;
}

Result<TransferReport> copy(const TransferArguments& choice, Output& out) {
  STOKER_ASSIGN_OR_RETURN(options, options_of(choice));
  STOKER_ASSIGN_OR_RETURN(source, location_of(choice.source, choice, out));
  STOKER_ASSIGN_OR_RETURN(target, location_of(choice.target, choice, out));
  install_stop_signals();
  const auto progress = out.progress("");
  return transfer::transfer_dataset(source, target, options, *progress);
}

}  // namespace

void TransferArguments::declare(Arguments& arguments) {
  arguments.option("--streams", &streams, "N", "Number of connections, or of threads (default: 4)");
  arguments.option("--limit", &limit, "RATE", "Limit of all streams together, such as 100MB/s");
  arguments.flag("--replace", &is_replacing, "Move a different dataset at the target aside");
  arguments.flag("--dry-run", &is_dry_run, "Only compare, and show what would be sent");
  arguments.flag("--login-node", &is_login_node, "Connect to HOST, not to its site's transfer node");
  arguments.option("--host-program", &program, "PATH", "Path of stoker on HOST, if it is not in ssh's PATH");
}

Result<ByteCount> parse_rate(std::string_view command, std::string_view text) {
  const std::string_view size = text.ends_with("/s") ? text.substr(0, text.size() - 2) : text;
  const auto bytes = parse_bytes(size);
  if (!bytes.ok()) return Status(bytes.status()).with_context(format("{}: --limit", command));
  if (bytes->value == 0) return invalid("{}: --limit: must be above 0", command);
  return *bytes;
}

int run_transfer(const TransferArguments& choice, Output& out) {
  const auto report = copy(choice, out);
  if (report.ok()) {
    print(choice, *report, out);
    out.json(to_json(choice, *report));
    return exit_code::kOk;
  }
  Status status = report.status();
  const bool may_continue = status.code() == Code::cancelled || status.code() == Code::timeout ||
                            status.code() == Code::unavailable || status.code() == Code::no_space;
  if (may_continue && status.cure().empty())
    status = std::move(status).cure("{}      (continues)", command_line(choice));
  return out.fail(status);
}

}  // namespace stoker::cli

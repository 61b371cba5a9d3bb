// `stoker logs RUN`: docs/commands/logs.md
#include <memory>

#include <nlohmann/json.hpp>
#include <re2/re2.h>

#include "base/file.h"
#include "base/time.h"
#include "cli/commands.h"
#include "cli/json.h"
#include "cli/runs.h"
#include "launch/control.h"
#include "observe/log_reader.h"
#include "record/state.h"

namespace stoker::cli {
namespace {

struct Options {
  RunChoice choice;
  std::optional<std::int64_t> rank;
  std::int64_t attempt = 0;
  bool is_following = false;
  std::string pattern;
};

Result<std::unique_ptr<RE2>> compile(const std::string& pattern) {
  if (pattern.empty()) return std::unique_ptr<RE2>();
  RE2::Options options;
  options.set_log_errors(false);
  auto regex = std::make_unique<RE2>(pattern, options);
  if (!regex->ok()) return invalid("logs: --grep '{}': {}", printable(pattern), regex->error());
  return regex;
}

// The attempt to follow: waits, saying for what, until the run has begun or will never begin.
Result<record::Attempt> begun_attempt(const record::RunFolder& run, std::int64_t number, Output& out) {
  auto scheduler = make_scheduler();
  launch::WaitOptions options;
  bool has_begun = false;
  options.on_change = [&](const launch::RunLife& life) {
    has_begun = life.life == launch::Life::running && life.records.state == record::State::running;
    if (life.life == launch::Life::queued)
      out.note("job {} is queued{}", life.scheduler_job, life.note.empty() ? "" : " (" + life.note + ")");
  };
  options.should_stop = [&] { return has_begun || stop_requested(); };
  const auto over = launch::wait_for(run, scheduler, options);
  if (!over.ok() && !has_begun) return over.error();
  return find_attempt(run, number);
}

// Prints until the end of the logs, or with --follow until the run has ended and all is printed.
Status print(const record::RunFolder& run, observe::LogReader& reader, const observe::LineSink& sink,
             bool is_following) {
  for (;;) {
    const bool is_over = !is_following || record::derive_state(run).state != record::State::running;
    RETURN_IF_ERROR(reader.read_new(sink));
    if (is_over) {
      reader.finish(sink);
      return {};
    }
    std::fflush(stdout);
    RealClock().sleep(std::chrono::milliseconds(200));
    if (stop_requested()) return cancelled("logs: interrupted");
  }
}

// A submitted attempt whose ranks never printed: what its batch script said is all there is.
void show_batch_log(const record::Attempt& attempt, Output& out) {
  const auto ranks = observe::ranks_with_logs(attempt);
  const auto log = read_file(attempt.batch_log(), 1_MiB);
  if (!ranks.ok() || !ranks->empty() || !log.ok() || log->empty()) return;
  out.note("no rank has begun; {} says:", near(attempt.batch_log()));
  out.raw(*log);
}

Status show(const Options& o, Output& out) {
  OK_OR_RETURN(regex, compile(o.pattern));
  OK_OR_RETURN(run, find_run(o.choice));
  const bool is_queued = record::derive_state(run).state == record::State::queued;
  OK_OR_RETURN(attempt, is_queued && o.is_following ? begun_attempt(run, o.attempt, out)
                                                    : find_attempt(run, o.attempt));
  OK_OR_RETURN(reader, observe::LogReader::open(attempt, static_cast<int>(o.rank.value_or(-1))));
  nlohmann::ordered_json lines = nlohmann::ordered_json::array();
  const bool has_prefix = !o.rank.has_value();
  const observe::LineSink sink = [&](int rank, std::string_view line) {
    if (regex && !RE2::PartialMatch(re2::StringPiece(line.data(), line.size()), *regex)) return;
    if (out.is_json()) {
      lines.push_back({{"rank", rank}, {"text", std::string(line)}});
    } else if (has_prefix) {
      out.raw(format("[{}] {}\n", rank, line));
    } else {
      out.raw(format("{}\n", line));
    }
  };
  RETURN_IF_ERROR(print(run, reader, sink, o.is_following));
  show_batch_log(attempt, out);
  const nlohmann::ordered_json value = {{"run", run.id()}, {"attempt", attempt.number()}, {"lines", lines}};
  if (out.is_json()) out.json(dump(value));
  return {};
}

}  // namespace

int logs(std::span<const std::string> words, Output& out) {
  Options o;
  Arguments arguments("logs", "Shows what the ranks of a run printed.");
  add_run_choice(arguments, &o.choice);
  arguments.option("--rank", &o.rank, "N", "only this rank, its lines without a prefix");
  arguments.option("--attempt", &o.attempt, "N", "which attempt; 0 is the last");
  arguments.flag("-f,--follow", &o.is_following, "go on until the run ends");
  arguments.option("--grep", &o.pattern, "PATTERN", "only lines that match this regular expression (RE2)");
  arguments.example("stoker logs last --rank 0");
  arguments.example("stoker logs last --grep 'loss [0-9.]+'");
  if (const auto code = arguments.parse(words, out)) return *code;
  if (o.rank && *o.rank < 0) return out.fail(invalid("logs: --rank {}: ranks are counted from 0", *o.rank));
  if (o.attempt < 0) return out.fail(invalid("logs: --attempt {}: attempts are counted from 1", o.attempt));
  install_stop_signals();
  const Status status = show(o, out);
  return status.ok() ? exit_code::kOk : out.fail(status);
}

}  // namespace stoker::cli

#include "cli/hello_session.h"

#include <algorithm>

#include "cli/running.h"
#include "launch/environment.h"
#include "rank/hello/choose.h"
#include "rank/hello/said.h"
#include "record/hello/hello.h"

namespace stoker::cli {

namespace hello_room = rank::hello;

Result<hello_room::SessionOptions> hello_session(const std::optional<job::Job>& job,
                                                 std::optional<std::int64_t> nodes,
                                                 std::optional<std::int64_t> ranks_per_node) {
  OK_OR_RETURN(here, rank::look_around());
  const Environment environment = current_environment();
  OK_OR_RETURN(options, hello_room::choose({job ? &*job : nullptr, nodes, ranks_per_node}, here,
                                           hello_room::finds_program("srun", environment)));
  OK_OR_RETURN(program, own_program());
  options.stoker = program;
  options.environment = launch::inherited_environment(job.value_or(job::Job()), environment);
  return options;
}

void print_rungs(const hello_room::Report& report, Output& out) {
  using hello_room::RungState;
  const Words& words = report.words;
  for (const hello_room::Rung& rung : report.rungs) {
    const std::string name = hello_room::in_words(rung.name, words);
    const std::string text = printable(rung.text);
    if (rung.state == RungState::passed) out.line("  {:<12}{}", name, text);
    if (rung.state == RungState::failed) out.line("  {:<12}{}", name, words.say("{}  <- fails", text).text());
    if (rung.state == RungState::skipped)
      out.line("  {:<12}{}", name, words.say("{} (not tried)", text).text());
  }
}

void keep_hello(const job::Job& job, const hello_room::Report& report, bool is_well) {
  const RealClock clock;
  record::HelloRecord kept{.time = Seconds(clock.wall().time_since_epoch()).count(),
                           .job = job.name,
                           .hosts = report.hosts,
                           .ranks = static_cast<int>(report.ranks.size()),
                           .is_well = is_well};
  for (const hello_room::Rung& rung : report.rungs) {
    if (rung.name == "all-reduce") kept.all_reduced = rung.state == hello_room::RungState::passed;
  }
  for (const hello_room::Timing& timing : report.timings) {
    if (timing.operation == net::Operation::all_reduce)
      kept.all_reduce_bytes_per_s = std::max(kept.all_reduce_bytes_per_s, timing.bytes_per_s());
  }
  if (const auto first = report.ranks.find(Rank(0)); first != report.ranks.end()) {
    const auto& facts = first->second;
    const net::InterfaceChoice& choice = facts.gpus.empty() ? facts.gloo : facts.nccl;
    if (choice.chosen) kept.interface = choice.chosen->name;
  }
  (void)record::write_hello(job.record.directory, kept);
}

}  // namespace stoker::cli

#include "cli/hello_session.h"

#include <algorithm>

#include "cli/run_request.h"
#include "launch/start/environment.h"
#include "netcheck/check_plan.h"
#include "netcheck/reported_message.h"
#include "record/hello/hello.h"

namespace stoker::cli {

Result<netcheck::NetworkCheckOptions> hello_session(const std::optional<job::Job>& job,
                                                    std::optional<std::int64_t> nodes,
                                                    std::optional<std::int64_t> ranks_per_node) {
  STOKER_ASSIGN_OR_RETURN(here, rank::detect_launch_context());
  const Environment environment = current_environment();
  STOKER_ASSIGN_OR_RETURN(options,
                          netcheck::plan_network_check({job ? &*job : nullptr, nodes, ranks_per_node}, here,
                                                       netcheck::is_in_path("srun", environment)));
  STOKER_ASSIGN_OR_RETURN(program, own_program());
  options.stoker = program;
  options.environment = launch::inherited_environment(job.value_or(job::Job()), environment);
  return options;
}

void print_check_results(const netcheck::Report& report, const Translator& words, Output& out) {
  using netcheck::CheckState;
  for (const netcheck::CheckStep& step : report.steps) {
    const std::string name = words.render(netcheck::reported_message(step.name));
    const std::string text = printable(words.render(step.text));
    if (step.state == CheckState::passed) out.line("  {:<12}{}", name, text);
    if (step.state == CheckState::failed)
      out.line("  {:<12}{}", name, words.localize("{}  <- fails", text).text());
    if (step.state == CheckState::skipped)
      out.line("  {:<12}{}", name, words.localize("{} (not tried)", text).text());
  }
}

void save_hello_record(const job::Job& job, const netcheck::Report& report, bool is_well) {
  const RealClock clock;
  record::HelloRecord kept{.time = Seconds(clock.wall().time_since_epoch()).count(),
                           .job = job.name,
                           .hosts = report.hosts,
                           .ranks = static_cast<int>(report.ranks.size()),
                           .is_ready = is_well};
  for (const netcheck::CheckStep& step : report.steps) {
    if (step.name == "all-reduce") kept.all_reduced = step.state == netcheck::CheckState::passed;
  }
  for (const netcheck::Timing& timing : report.timings) {
    if (timing.operation == netcheck::Operation::all_reduce)
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

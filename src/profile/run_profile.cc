#include "profile/run_profile.h"

#include <set>

#include "base/file.h"
#include "job/job.h"
#include "profile/advice.h"
#include "profile/flight_collectives.h"
#include "profile/nccl/nccl_log.h"
#include "profile/nccl/nccl_notes.h"
#include "profile/trace/trace_profile.h"
#include "record/events.h"
#include "record/run_events.h"

namespace stoker::profile {
namespace {

constexpr std::size_t kMostNamedFiles = 8;

// Fills the hosts of the ranks; returns their number.
int read_hosts(const record::Attempt& attempt, Profile& profile) {
  const auto log = record::read_attempt_events(attempt.folder());
  if (!log.ok()) return 1;
  std::map<int, std::string> hosts;
  for (const record::Event& event : log->events) {
    if (const auto started = record::rank_started(event)) hosts[started->rank] = started->host;
  }
  std::set<std::string> names;
  for (const auto& [rank, host] : hosts) names.insert(host);
  for (RankProfile& rank : profile.ranks) {
    const auto found = hosts.find(rank.rank);
    // One host for all ranks is no news.
    if (found != hosts.end() && names.size() > 1) rank.host = found->second;
  }
  return std::max(1, static_cast<int>(names.size()));
}

// Of `stoker profile --tool torch`; else the traces that the program wrote to the attempt's folder.
std::vector<Path> torch_traces(const record::Attempt& attempt) {
  std::vector<Path> traces;
  for (const auto& [rank, file] : files_by_rank(attempt.folder(), "torch-", ".json.gz"))
    traces.push_back(file);
  const auto names = list_directory(attempt.folder());
  if (!traces.empty() || !names.ok()) return traces;
  for (const std::string& name : *names) {
    const bool is_own = name.starts_with("trace-") && name.ends_with(".json");  // of the trainer
    const bool is_trace =
        name.find("trace") < name.size() && (name.ends_with(".json") || name.ends_with(".json.gz"));
    if (is_trace && !is_own && looks_like_trace(attempt.folder() / name))
      traces.push_back(attempt.folder() / name);
  }
  return traces;
}

std::string names_of(const std::vector<Path>& files) {
  std::string names;
  for (const Path& file : files) names += (names.empty() ? "" : " ") + shell_quote(file.string());
  return files.size() <= kMostNamedFiles ? names
                                         : shell_quote(files.front().parent_path().string()) + "/*.json*";
}

// The logs of the ranks, and the files of NCCL_DEBUG_FILE in the attempt's folder.
NcclLines read_nccl_logs(const record::Attempt& attempt, CollectiveTable& collectives) {
  NcclLines lines;
  const auto names = list_directory(attempt.folder());
  if (!names.ok()) return lines;
  for (const std::string& name : *names) {
    const bool is_log = (name.starts_with("rank-") && name.ends_with(".log")) || name.starts_with("nccl");
    if (is_log) lines += read_nccl_log(attempt.folder() / name, collectives);
  }
  return lines;
}

AdviceContext context_of(const record::RunFolder& run, const record::Attempt& attempt,
                         const std::string& run_name, int hosts) {
  AdviceContext context{.run = run_name, .job = run.description().job_file, .dataset = "", .hosts = hosts};
  const auto job = job::load(path_exists(attempt.job()) ? attempt.job() : run.job());
  if (!job.ok()) return context;
  const auto train = job->data.find("train");
  if (train != job->data.end()) context.dataset = train->second.source.string();
  return context;
}

// What the trainer's records do not separate.
void note_limits(Profile& profile) {
  if (profile.source == TimeSource::trainer)
    profile.notes.push_back(message("'other' has copies of batches to the GPU, metrics and logging"));
}

}  // namespace

Result<Profile> profile_attempt(const record::RunFolder& run, const record::Attempt& attempt,
                                const StepSelection& selection, const std::string& run_name) {
  Profile profile;
  profile.subject = run.id();
  profile.attempt = attempt.number();
  TimeSource source = TimeSource::none;
  const std::map<int, Path> files = find_records(attempt, &source);
  if (!files.empty()) STOKER_RETURN_IF_ERROR(read_records(files, source, selection, profile));
  CollectiveTable collectives;
  const std::vector<Path> traces = torch_traces(attempt);
  if (files.empty() && !traces.empty()) {
    STOKER_RETURN_IF_ERROR(read_traces(traces, selection, collectives, profile));
  } else if (!traces.empty()) {
    profile.notes.push_back(message("traces of these steps: stoker profile {}", names_of(traces)));
  }
  add_flight_collectives(attempt, collectives, profile);
  note_nccl_lines(read_nccl_logs(attempt, collectives), profile);
  profile.collectives = collectives.rows();
  if (files.empty() && traces.empty() && collectives.empty()) {
    return not_found("run {}: attempt {} has no records of steps or collectives", printable(run.id()),
                     attempt.number())
        .cure("with stoker.profile() as p: for batch in p.steps(loader): ...   (in the script)");
  }
  const int hosts = read_hosts(attempt, profile);
  note_limits(profile);
  advise(context_of(run, attempt, run_name, hosts), profile);
  return profile;
}

}  // namespace stoker::profile

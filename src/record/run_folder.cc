// A run is created as follows:
//   1. mkdir runs/<id> reserves the name (a random suffix makes a retry succeed).
//   2. job.yaml is written and synced; step 3 syncs its directory entry.
//   3. run.json is written to a temporary file, synced and renamed, and the folder synced  <- the run exists
// A crash before 3 leaves a folder without run.json, which every reader ignores.
// An attempt's number is reserved with mkdir attempts/<n>: the kernel or the file server lets only one
// succeed.
#include "record/run_folder.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <ctime>
#include <sys/stat.h>

#include "base/file.h"
#include "base/language/counted.h"
#include "base/secrets.h"
#include "record/json.h"
#include "record/run_events.h"
#include "stoker/time.h"

namespace stoker::record {

namespace {

constexpr int kRunVersion = 1;
constexpr int kMaxAttempts = 100'000;
constexpr std::size_t kTimeLength = 19;  // 2026-11-21T10-03-11

std::vector<std::pair<std::string, std::string>> hidden_params(const RunDescription& what) {
  std::vector<std::pair<std::string, std::string>> params;
  for (const auto& [name, value] : what.params) params.emplace_back(name, hide_variable(name, value));
  return params;
}

std::string to_run_json(const std::string& id, const RunDescription& what) {
  Json object;
  object["format"] = "stoker-run";
  object["version"] = kRunVersion;
  object["id"] = id;
  object["name"] = what.name;
  object["created"] = what.created;
  object["git"] = what.git;
  object["command"] = hide_in_command(what.command);
  object["job_file"] = what.job_file;
  object["working_directory"] = what.working_directory;
  object["typed"] = hide_in_command(what.typed);
  object["world_size"] = what.world_size;
  object["hosts"] = what.hosts;
  object["user"] = what.user;
  object["stoker_version"] = what.stoker_version;
  object["scheduler_job"] = what.scheduler_job;
  object["params"] = to_json_object(hidden_params(what));
  return to_file_text(object);
}

Result<RunDescription> read_run_json(const Path& file) {
  STOKER_ASSIGN_OR_RETURN(object, read_json_object(file));
  const std::string subject = printable(file.string());
  if (text_of(object, "format") != "stoker-run") return corrupt("{}: not a stoker run (format)", subject);
  if (integer_of(object, "version") != kRunVersion) {
    return corrupt("{}: run folder version {}, this Stoker version reads {}", subject,
                   integer_of(object, "version"), kRunVersion);
  }
  RunDescription what;
  what.name = text_of(object, "name");
  what.created = number_of(object, "created");
  what.git = text_of(object, "git");
  what.command = texts_of(object, "command");
  what.job_file = text_of(object, "job_file");
  what.working_directory = text_of(object, "working_directory");
  what.typed = texts_of(object, "typed");
  what.world_size =
      static_cast<int>(std::clamp<std::int64_t>(integer_of(object, "world_size", 1), 0, 1'000'000));
  what.hosts = texts_of(object, "hosts");
  what.user = text_of(object, "user");
  what.stoker_version = text_of(object, "stoker_version");
  what.scheduler_job = text_of(object, "scheduler_job");
  what.params = pairs_of(object, "params");
  return what;
}

bool is_run_id(std::string_view name) {
  constexpr std::string_view kShape = "0000-00-00T00-00-00";
  if (name.size() < kTimeLength + 2 || name[kTimeLength] != '_') return false;
  for (std::size_t i = 0; i < kTimeLength; ++i) {
    const bool digit = name[i] >= '0' && name[i] <= '9';
    if (kShape[i] == '0' ? !digit : name[i] != kShape[i]) return false;
  }
  return true;
}

std::string sanitize(std::string_view text, std::size_t longest) {
  std::string kept;
  for (char c : text.substr(0, longest)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || (c == '.' && !kept.empty());
    kept += plain ? c : '-';
  }
  return kept;
}

std::string list_ids(const std::vector<const ListedRun*>& runs) {
  constexpr std::size_t kShown = 3;
  std::string text;
  for (std::size_t i = 0; i < runs.size() && i < kShown; ++i) {
    if (i > 0) text += ", ";
    text += printable(runs[runs.size() - 1 - i]->id);
  }
  if (runs.size() > kShown) text += format(" and {} more", runs.size() - kShown);
  return text;
}

std::vector<const ListedRun*> filter_runs(const std::vector<ListedRun>& runs, auto&& fits) {
  std::vector<const ListedRun*> found;
  for (const ListedRun& run : runs) {
    if (fits(run)) found.push_back(&run);
  }
  return found;
}

/// Whether an attempt of the run was submitted as this job.
bool was_submitted_as(const ListedRun& listed, std::string_view job) {
  const auto attempts = listed.run ? listed.run->attempts() : std::vector<Attempt>();
  if (!attempts) return false;
  return std::any_of(attempts->begin(), attempts->end(), [&](const Attempt& attempt) {
    const auto log = read_events(attempt.submit_events());
    return log && std::any_of(log->events.begin(), log->events.end(), [&](const Event& event) {
             const auto submission = submitted(event);
             return submission && submission->scheduler_job == job;
           });
  });
}

/// The ways in which a name can match a run, the most specific first; the first with a match is used.
std::vector<const ListedRun*> candidates(const std::vector<ListedRun>& runs, std::string_view word) {
  auto found = filter_runs(runs, [&](const ListedRun& r) { return r.id == word; });
  if (found.empty()) {
    found = filter_runs(runs, [&](const ListedRun& r) {
      return r.run && !word.empty() && r.run->description().scheduler_job == word;
    });
  }
  const bool is_number = !word.empty() && word.find_first_not_of("0123456789_+") == std::string_view::npos;
  if (found.empty() && is_number)
    found = filter_runs(runs, [&](const ListedRun& r) { return was_submitted_as(r, word); });
  if (found.empty()) found = filter_runs(runs, [&](const ListedRun& r) { return r.id.starts_with(word); });
  if (found.empty()) {
    const std::string end = format("_{}", word);
    found = filter_runs(runs, [&](const ListedRun& r) { return r.id.ends_with(end); });
  }
  return found;
}

Result<RunFolder> open_listed(const ListedRun& run) {
  if (!run.problem.ok()) return run.problem;
  return *run.run;
}

// For a folder without readers yet: no temporary name, and the folder is synced later.
Status write_new(const Path& path, std::string_view text) {
  STOKER_ASSIGN_OR_RETURN(file, File::create_new(path));
  if (access_of(text) == Access::owner && ::fchmod(file.fd(), 0600) != 0)
    return posix_error(printable(path.string()), errno);
  STOKER_RETURN_IF_ERROR(file.write(text));
  STOKER_RETURN_IF_ERROR(file.sync());
  return file.close();
}

}  // namespace

Access access_of(std::string_view text) {
  bool has_values = text.find("\n  variables:\n") != std::string_view::npos;
  constexpr std::string_view kExport = "--export=";
  for (std::size_t at = text.find(kExport); at != std::string_view::npos; at = text.find(kExport, at + 1)) {
    const std::string_view names = text.substr(at + kExport.size());
    has_values |= names.substr(0, names.find_first_of(" \t\n\"'")).find('=') != std::string_view::npos;
  }
  return has_values || has_secret(text) ? Access::owner : Access::umask;
}

Path Attempt::file(std::string_view stem, int index, std::string_view extension) const {
  return folder_ / format("{}-{:04}.{}", stem, index, extension);
}

Path Attempt::events(std::string_view writer) const { return folder_ / format("events-{}.jsonl", writer); }
Path Attempt::node_events(int node) const { return events(format("node-{:04}", node)); }
Path Attempt::rank_events(int rank) const { return events(format("rank-{:04}", rank)); }
std::vector<int> Attempt::sampled_nodes() const {
  constexpr std::string_view kStem = "system-";
  constexpr std::string_view kEnd = ".csv";
  std::vector<int> nodes;
  const auto names = list_directory(folder_);
  if (!names.ok()) return nodes;
  for (std::string_view name : *names) {
    std::int64_t node = 0;
    if (!name.starts_with(kStem) || !name.ends_with(kEnd) || name.size() <= kStem.size() + kEnd.size())
      continue;
    const std::string_view digits = name.substr(kStem.size(), name.size() - kStem.size() - kEnd.size());
    if (parse_number(digits, &node) && node >= 0 && node < 10'000'000)
      nodes.push_back(static_cast<int>(node));
  }
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}
Path Attempt::sampler_events(int node) const { return file("events-sampler", node, "jsonl"); }
Path Attempt::submit_events() const { return events("submit"); }
Path Attempt::cancel_events() const { return events("cancel"); }

Path Attempt::next_events() const { return events("next"); }

std::string make_run_id(double unix_seconds, std::string_view git, std::string_view name,
                        std::string_view random) {
  const std::time_t seconds = static_cast<std::time_t>(unix_seconds);
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  char time[32];
  std::strftime(time, sizeof time, "%Y-%m-%dT%H-%M-%S", &utc);
  const std::string code = git.empty() ? "nogit" : sanitize(git, 12);
  const std::string what = name.empty() ? "run" : sanitize(name, 48);
  return format("{}_{}_{}_{}", time, code, what, random);
}

RunFolder::RunFolder(Path folder, RunDescription what)
    : folder_(std::move(folder)), description_(std::move(what)) {
  const Path normal = folder_.lexically_normal();
  id_ = normal.has_filename() ? normal.filename().string() : normal.parent_path().filename().string();
}

Result<RunFolder> RunFolder::create(const Path& runs, const RunDescription& what, std::string_view job_yaml) {
  RunDescription described = what;
  if (described.created == 0) described.created = unix_seconds(RealClock().wall());
  STOKER_RETURN_IF_ERROR(make_directories(runs));
  std::string id;
  Status taken;
  for (int tries = 0; tries < 100; ++tries) {
    id = make_run_id(described.created, described.git, described.name, random_name(4));
    taken = make_directory(runs / id);
    if (taken.code() != Code::exists) break;
  }
  STOKER_RETURN_IF_ERROR(taken);
  RunFolder run(runs / id, std::move(described));
  STOKER_RETURN_IF_ERROR(write_new(run.job(), job_yaml));
  const std::string text = to_run_json(id, run.description_);
  STOKER_RETURN_IF_ERROR(write_file(run.folder() / "run.json", text, Durability::synced, access_of(text)));
  return run;
}

Result<RunFolder> RunFolder::open(const Path& folder) {
  const std::string subject = printable(folder.string());
  if (!path_exists(folder)) return not_found("{}: no such run folder", subject);
  auto what = read_run_json(folder / "run.json");
  if (!what && what.error().code() == Code::not_found)
    return not_found("{}: not a run folder (no run.json)", subject);
  if (!what) return std::move(what).error();
  return RunFolder(folder, *std::move(what));
}

Result<RunFolder> RunFolder::find(const Path& runs, std::string_view run) {
  const std::string place = printable(runs.string());
  if (run.empty()) return invalid("run '': an empty name matches every run");
  const bool is_path = run.find('/') != std::string_view::npos || run == "." || run == "..";
  if (is_path || path_exists(Path(run) / "run.json")) return open(Path(run));
  STOKER_ASSIGN_OR_RETURN(listed, list_runs(runs));
  if (listed.empty())
    return not_found("run '{}': no runs in {}", printable(run), place).cure("stoker run JOB");
  if (run == "last") return open_listed(listed.back());
  const auto found = candidates(listed, run);
  if (found.size() == 1) return open_listed(*found.front());
  if (found.size() > 1) {
    return invalid("run '{}': {} runs match ({})", printable(run), found.size(), list_ids(found))
        .cure("use more of the id, or its last four letters");
  }
  const auto all = filter_runs(listed, [](const ListedRun&) { return true; });
  return not_found("run '{}': not found in {} (newest: {})", printable(run), place, list_ids(all));
}

Result<Attempt> RunFolder::start_attempt(std::string_view job_yaml) const {
  const Path all = folder_ / "attempts";
  STOKER_RETURN_IF_ERROR(make_directories(all));
  STOKER_ASSIGN_OR_RETURN(known, attempts());
  for (int number = known.empty() ? 1 : known.back().number() + 1; number <= kMaxAttempts; ++number) {
    const Attempt attempt(all / std::to_string(number), number);
    const Status taken = make_directory(attempt.folder());
    if (taken.code() == Code::exists) continue;
    STOKER_RETURN_IF_ERROR(taken);
    STOKER_RETURN_IF_ERROR(write_file(attempt.job(), job_yaml, Durability::synced, access_of(job_yaml)));
    return attempt;
  }
  return invalid("{}: {}, the maximum of a run", printable(all.string()), counted(kMaxAttempts, "attempt"));
}

Result<std::vector<Attempt>> RunFolder::attempts() const {
  std::vector<Attempt> found;
  auto names = list_directory(folder_ / "attempts");
  if (!names && names.error().code() == Code::not_found) return found;
  if (!names) return std::move(names).error();
  for (const std::string& name : *names) {
    std::int64_t number = 0;
    if (!parse_number(name, &number) || number < 1 || number > kMaxAttempts || std::to_string(number) != name)
      continue;
    found.emplace_back(folder_ / "attempts" / name, static_cast<int>(number));
  }
  std::sort(found.begin(), found.end(),
            [](const Attempt& a, const Attempt& b) { return a.number() < b.number(); });
  return found;
}

Result<Attempt> RunFolder::last_attempt() const {
  STOKER_ASSIGN_OR_RETURN(all, attempts());
  if (all.empty()) return not_found("run {}: no attempt has started", id_);
  return all.back();
}

Result<std::vector<ListedRun>> list_runs(const Path& runs) {
  std::vector<ListedRun> found;
  auto names = list_directory(runs);
  if (!names && names.error().code() == Code::not_found) return found;
  if (!names) return std::move(names).error();
  for (const std::string& name : *names) {
    if (!is_run_id(name)) continue;
    auto run = RunFolder::open(runs / name);
    if (!run && run.error().code() == Code::not_found) continue;  // its creation was interrupted
    ListedRun listed{name, runs / name, std::nullopt, Status()};
    if (run) {
      listed.run = *std::move(run);
    } else {
      listed.problem = std::move(run).error();
    }
    found.push_back(std::move(listed));
  }
  // IDs have a resolution of one second; run.json orders runs within the same second.
  std::stable_sort(found.begin(), found.end(), [](const ListedRun& a, const ListedRun& b) {
    const int by_time = a.id.compare(0, kTimeLength, b.id, 0, kTimeLength);
    if (by_time != 0) return by_time < 0;
    return (a.run ? a.run->description().created : 0) < (b.run ? b.run->description().created : 0);
  });
  return found;
}

}  // namespace stoker::record

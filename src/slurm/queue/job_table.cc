#include "slurm/queue/job_table.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <functional>

namespace stoker::slurm {
namespace {

constexpr std::size_t kLongestLine = 64 * 1024;

// Empty for Slurm's placeholders.
std::string value_or_none(std::string_view text) {
  text = trim(text);
  for (std::string_view none : {"None", "(null)", "N/A", "n/a", "Unknown", "None assigned"}) {
    if (text == none) return "";
  }
  return std::string(text);
}

// "1:0", "0:9", "0:15".
void set_exit(JobInfo& job, std::string_view text) {
  const std::size_t colon = text.find(':');
  std::int64_t code = 0;
  std::int64_t signal = 0;
  if (colon == std::string_view::npos || !parse_number(text.substr(0, colon), &code) ||
      !parse_number(text.substr(colon + 1), &signal) || code < 0 || code > 65535 || signal < 0 ||
      signal > 65535)
    return;
  job.exit_code = static_cast<int>(code);
  job.exit_signal = static_cast<int>(signal);
}

// "2:0": the highest exit code of the job's steps.
void set_worst_step(JobInfo& job, std::string_view text) {
  JobInfo step;
  set_exit(step, text);
  job.worst_step_code = step.exit_code;
}

using Setter = std::function<void(JobInfo&, std::string_view)>;
struct JobColumn {
  std::string_view name;
  Setter set;
};

Setter text_into(std::string JobInfo::* member) {
  return [member](JobInfo& job, std::string_view text) { job.*member = value_or_none(text); };
}
Setter time_into(std::optional<double> JobInfo::* member) {
  return [member](JobInfo& job, std::string_view text) { job.*member = parse_slurm_time(text); };
}

void set_state(JobInfo& job, std::string_view text) {
  job.state_text = std::string(trim(text));
  job.state = parse_job_state(job.state_text);
}

void set_restarts(JobInfo& job, std::string_view text) {
  std::int64_t count = 0;
  if (parse_number(trim(text), &count) && count >= 0 && count <= 1'000'000)
    job.restarts = static_cast<int>(count);
}

// "paul(1000)".
void set_user(JobInfo& job, std::string_view text) {
  job.user = value_or_none(text.substr(0, text.find('(')));
}

void set_log(JobInfo& job, std::string_view text) {
  const std::string path = value_or_none(text);
  if (path.starts_with('/')) job.log = path;
}

// scontrol reports the raw id of an array task; users know array id and index. This column follows
// ArrayJobId.
void set_array_task(JobInfo& job, std::string_view text) {
  std::uint64_t index = 0;
  if (!job.array.empty() && parse_number(trim(text), &index)) job.id = format("{}_{}", job.array, index);
}

const std::array<JobColumn, 35>& columns() {
  static const std::array<JobColumn, 35> kColumns = {{
      {"JOBID", text_into(&JobInfo::id)},
      {"JobID", text_into(&JobInfo::id)},
      {"JobId", text_into(&JobInfo::id)},
      {"STATE", set_state},
      {"ST", set_state},
      {"State", set_state},
      {"JobState", set_state},
      {"REASON", text_into(&JobInfo::reason)},
      {"Reason", text_into(&JobInfo::reason)},
      {"NAME", text_into(&JobInfo::name)},
      {"JobName", text_into(&JobInfo::name)},
      {"COMMENT", text_into(&JobInfo::comment)},
      {"Comment", text_into(&JobInfo::comment)},
      {"PARTITION", text_into(&JobInfo::partition)},
      {"Partition", text_into(&JobInfo::partition)},
      {"NODELIST", text_into(&JobInfo::nodes)},
      {"NodeList", text_into(&JobInfo::nodes)},
      {"EXEC_HOST", [](JobInfo&, std::string_view) {}},
      {"ExitCode", set_exit},
      {"START_TIME", time_into(&JobInfo::start)},
      {"Start", time_into(&JobInfo::start)},
      {"StartTime", time_into(&JobInfo::start)},
      {"END_TIME", time_into(&JobInfo::end)},
      {"End", time_into(&JobInfo::end)},
      {"EndTime", time_into(&JobInfo::end)},
      {"Restarts", set_restarts},
      {"DerivedExitCode", set_worst_step},
      {"User", text_into(&JobInfo::user)},
      {"USER", text_into(&JobInfo::user)},
      {"UserId", set_user},
      {"StdOut", set_log},
      {"STDOUT", set_log},
      {"ARRAY_JOB_ID", text_into(&JobInfo::array)},
      {"ArrayJobId", text_into(&JobInfo::array)},
      {"ArrayTaskId", set_array_task},
  }};
  return kColumns;
}

const Setter* setter_of(std::string_view name) {
  for (const JobColumn& column : columns()) {
    if (column.name == name) return &column.set;
  }
  return nullptr;
}

std::string_view without_line_end(std::string_view line) {
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// Removes the next line from `text` and returns it.
std::string_view next_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return without_line_end(line);
}

// The setters of the columns; empty if the line is not a header.
std::vector<const Setter*> read_header(std::string_view line) {
  std::vector<const Setter*> setters;
  bool has_state = false;
  for (std::string_view name : split(line, '|')) {
    setters.push_back(setter_of(trim(name)));
    has_state = has_state || trim(name) == "STATE" || trim(name) == "State" || trim(name) == "ST";
  }
  const std::string_view first = line.substr(0, line.find('|'));
  const bool has_id = trim(first) == "JOBID" || trim(first) == "JobID";
  return has_id && has_state ? setters : std::vector<const Setter*>();
}

// "812345.batch", "812345.0".
bool is_step(std::string_view id) { return id.find('.') != std::string_view::npos; }

// sacct lists the steps after their job.
void add_step(JobList& list, const JobInfo& step) {
  if (list.jobs.empty() || list.jobs.back().failed) return;
  JobInfo& job = list.jobs.back();
  const std::string_view id = std::string_view(step.id).substr(0, step.id.find('.'));
  if (id != job.id || !is_over(step.state) || step.state == JobState::completed) return;
  job.failed = JobStepInfo{step.id, step.state, step.exit_code, step.exit_signal};
}

}  // namespace

const JobInfo* JobList::find(std::string_view id) const {
  const auto found = std::find_if(jobs.begin(), jobs.end(), [&](const JobInfo& job) { return job.id == id; });
  return found == jobs.end() ? nullptr : &*found;
}

JobIndex::JobIndex(const JobList& list) {
  ids_.reserve(list.jobs.size());
  for (const JobInfo& job : list.jobs) {
    ids_.emplace(job.id, &job);
    if (!job.comment.empty()) comments_.emplace(job.comment, &job);
  }
}

const JobInfo* JobIndex::by_id(std::string_view id) const {
  const auto found = ids_.find(id);
  return found == ids_.end() ? nullptr : found->second;
}

const JobInfo* JobIndex::by_comment(std::string_view comment) const {
  const auto found = comments_.find(comment);
  return found == comments_.end() ? nullptr : found->second;
}

bool is_job_id(std::string_view text) {
  const auto digits = [](std::string_view part) {
    return !part.empty() && part.size() <= 18 &&
           part.find_first_not_of("0123456789") == std::string_view::npos;
  };
  const std::size_t mark = text.find_first_of("_+");
  if (mark == std::string_view::npos) return digits(text);
  return digits(text.substr(0, mark)) && digits(text.substr(mark + 1));
}

std::string_view base_job_id(std::string_view id) { return id.substr(0, id.find('_')); }

std::optional<std::int64_t> array_task(std::string_view id) {
  const std::size_t mark = id.find('_');
  std::int64_t task = 0;
  if (mark == std::string_view::npos || !parse_number(id.substr(mark + 1), &task) || task < 0)
    return std::nullopt;
  return task;
}

std::optional<double> parse_slurm_time(std::string_view text) {
  text = trim(text);
  std::int64_t seconds = 0;
  if (parse_number(text, &seconds)) {
    if (seconds <= 0 || seconds > 1LL << 40) return std::nullopt;
    return static_cast<double>(seconds);
  }
  std::tm local{};
  const std::string copy(text.substr(0, 32));
  const char* end = ::strptime(copy.c_str(), "%Y-%m-%dT%H:%M:%S", &local);
  if (end == nullptr || *end != '\0') return std::nullopt;
  local.tm_isdst = -1;
  const std::time_t time = ::mktime(&local);
  return time > 0 ? std::optional<double>(static_cast<double>(time)) : std::nullopt;
}

Result<JobList> parse_job_table(std::string_view program, std::string_view text) {
  std::vector<const Setter*> header;
  while (header.empty() && !text.empty()) header = read_header(next_line(text));
  if (header.empty()) return corrupt("{}: printed no table of jobs", program);
  JobList list;
  while (!text.empty() && list.jobs.size() < kMaxJobs) {
    const std::string_view line = next_line(text);
    if (trim(line).empty()) continue;
    JobInfo job;
    std::string_view rest = line;
    bool is_whole = line.size() <= kLongestLine;
    for (std::size_t i = 0; is_whole && i < header.size(); ++i) {
      const bool is_last = i + 1 == header.size();
      const std::size_t end = is_last ? std::string_view::npos : rest.find('|');
      is_whole = is_last || end != std::string_view::npos;
      if (header[i] != nullptr) (*header[i])(job, rest.substr(0, end));
      rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    }
    if (is_whole && is_step(job.id)) {
      add_step(list, job);
      continue;
    }
    // "812301_[18-60%20]": the pending tasks of an array.
    const std::string_view id = std::string_view(job.id).substr(0, job.id.find("_["));
    if (is_whole && is_job_id(id) && !job.state_text.empty()) {
      list.jobs.push_back(std::move(job));
    } else {
      ++list.damaged;
    }
  }
  return list;
}

namespace {

bool is_key_character(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == ':' ||
         c == '/';
}

// Start of the next "Key=" at or after `from`: at the start or after a blank; npos without one.
std::size_t find_key(std::string_view text, std::size_t from, std::size_t* equals) {
  for (std::size_t at = from; at < text.size(); ++at) {
    const bool is_start = at == 0 || text[at - 1] == ' ' || text[at - 1] == '\n' || text[at - 1] == '\t';
    if (!is_start || !is_key_character(text[at]) || (text[at] >= '0' && text[at] <= '9')) continue;
    std::size_t end = at;
    while (end < text.size() && is_key_character(text[end])) ++end;
    if (end < text.size() && text[end] == '=') {
      *equals = end;
      return at;
    }
    at = end;
  }
  return std::string_view::npos;
}

}  // namespace

Result<JobList> parse_job_records(std::string_view text) {
  JobList list;
  const auto finish = [&] {
    if (!list.jobs.empty() && (!is_job_id(list.jobs.back().id) || list.jobs.back().state_text.empty())) {
      list.jobs.pop_back();
      ++list.damaged;
    }
  };
  std::size_t equals = 0;
  std::size_t key = find_key(text, 0, &equals);
  while (key != std::string_view::npos && list.jobs.size() < kMaxJobs) {
    std::size_t next_equals = 0;
    const std::size_t next = find_key(text, equals + 1, &next_equals);
    const std::string_view name = text.substr(key, equals - key);
    const std::string_view value = trim(text.substr(equals + 1, next - equals - 1));
    if (name == "JobId") {
      finish();
      list.jobs.emplace_back();
    }
    if (!list.jobs.empty() && value.size() <= kLongestLine) {
      if (const Setter* set = setter_of(name)) (*set)(list.jobs.back(), value);
    }
    key = next;
    equals = next_equals;
  }
  finish();
  if (list.jobs.empty()) return corrupt("scontrol: printed no job");
  return list;
}

Result<std::string> parse_sbatch_output(std::string_view text) {
  std::string id;
  for (std::string_view line : split(text.substr(0, 1u << 20), '\n')) {
    line = trim(line);
    const std::string_view number = line.substr(0, line.find(';'));
    if (is_job_id(number)) id = number;
  }
  if (id.empty()) return corrupt("sbatch: printed no job id");
  return id;
}

}  // namespace stoker::slurm

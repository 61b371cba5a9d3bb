// Protocol of an array submission:
//   1. read every task as a job and refuse invalid ones
//   2. create the run folder, attempts/<n>/ with array.json and the script, and tasks/
//   3. write the event `submitting`
//   4. call sbatch: once per chunk if the array exceeds the cluster's limit, and again for each link of
//        chained tasks
//   5. write the event `submitted` with each job's id; if a later chunk is refused, cancel the earlier ones
//        and write `submit_failed`
// A crash between 3 and 5 leaves an open submission, as for a single job.
#include "launch/array/submit_array.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <numeric>

#include "base/file.h"
#include "base/language/counted.h"
#include "launch/start/claim_attempt.h"
#include "launch/start/container.h"
#include "launch/start/new_run.h"
#include "launch/start/shell_environment.h"
#include "launch/state/array_state.h"
#include "record/run_events.h"
#include "record/state.h"

namespace stoker::launch {
namespace {

using namespace std::chrono_literals;

// Slurm's defaults: MaxArraySize 1001 bounds the index, MaxJobCount 10 000 the whole queue.
constexpr std::uint32_t kUsualArray = 1000;
constexpr std::uint32_t kMaxJobs = 10'000;
// A shorter job costs the scheduler more than it computes.
constexpr Duration kShort = 5min;
constexpr Duration kGoodLength = 15min;
// The number of concurrent jobs to assume without a cap.
constexpr std::size_t kUsualWidth = 64;
// Time limit for one scancel.
constexpr Duration kCancelTimeout = 10s;

std::uint32_t array_cap(const Request& request, std::uint32_t jobs) {
  const std::uint32_t cap = request.job.array.at_once.value_or(0);
  return cap < jobs ? cap : 0;
}

// Jobs `from` + 1 to `from` + `count`.
struct ArrayChunk {
  std::uint32_t from = 0;
  std::uint32_t count = 0;
};

std::vector<ArrayChunk> split_array(std::uint32_t jobs, std::uint32_t largest) {
  std::vector<ArrayChunk> chunks;
  for (std::uint32_t from = 0; from < jobs; from += largest)
    chunks.push_back({from, std::min(largest, jobs - from)});
  return chunks;
}

JobOrder chunk_order(const Request& request, const TaskArrayFile& array, const ArrayChunk& chunk,
                     const std::string& dependency, std::uint32_t link = 1) {
  const std::uint32_t cap = array_cap(request, array.jobs());
  return {.array = format("1-{}{}", chunk.count, cap > 0 ? format("%{}", cap) : ""),
          .dependency = dependency,
          .bundle = array.bundle,
          .from = chunk.from,
          .link = link};
}

Path script_path(const record::Attempt& attempt, std::size_t chunk) {
  return chunk == 0 ? attempt.batch_script() : attempt.folder() / format("job-{}.sbatch", chunk + 1);
}

bool is_too_large(const Status& refused) {
  return refused.code() == Code::invalid &&
         refused.message().find("Invalid job array specification") != std::string::npos;
}

// Context of one submission of an array.
struct ArraySubmitContext {
  const Request& request;
  const TaskArrayFile& array;
  const record::RunFolder& folder;
  const record::Attempt& attempt;
  slurm::Scheduler& scheduler;
  Deadline deadline;
};

Result<std::string> submit_chunk(const ArraySubmitContext& work, const JobOrder& order, std::size_t number) {
  STOKER_ASSIGN_OR_RETURN(script, batch_script(work.request, work.attempt, work.folder.id(), order));
  const Path path = script_path(work.attempt, number);
  STOKER_RETURN_IF_ERROR(write_file(path, script));
  auto job = work.scheduler.submit(std::filesystem::absolute(path), work.deadline);
  const Code code = job.status().code();
  if (code == Code::timeout || code == Code::corrupt) {
    return std::move(job).error().with_context(
        format("run {}: unknown whether it is in the queue", work.folder.id()));
  }
  return job;
}

// Chunks under one cap run one after the other: two at a time would double the cap. Without a cap, the next
// link of a task depends only on the previous link of that task.
std::string chunk_dependency(const ArraySubmitContext& work, const std::string& predecessors,
                             std::size_t chunks, const std::vector<std::string>& jobs) {
  if (array_cap(work.request, work.array.jobs()) > 0 && !jobs.empty())
    return format("{}{}afterany:{}", predecessors, predecessors.empty() ? "" : ",", jobs.back());
  return jobs.size() < chunks ? predecessors : format("aftercorr:{}", jobs[jobs.size() - chunks]);
}

// sbatch may have succeeded although its answer was lost: then the queue is unknown.
bool is_known(const Status& refused) {
  return refused.code() != Code::timeout && refused.code() != Code::corrupt;
}

// Returns the jobs that could not be cancelled. Cancels the last one first, because it may depend on the
// earlier ones.
std::vector<std::string> cancel_submitted(const std::vector<std::string>& jobs, slurm::Scheduler& scheduler) {
  std::vector<std::string> left;
  for (auto job = jobs.rbegin(); job != jobs.rend(); ++job) {
    const Status gone = scheduler.cancel(*job, Deadline::after(kCancelTimeout));
    if (!gone.ok() && gone.code() != Code::not_found) left.insert(left.begin(), *job);
  }
  return left;
}

// Submits the chunks. `jobs` receives the accepted ones, also after a refusal.
Status submit_chunks(const ArraySubmitContext& work, std::uint32_t largest, const std::string& dependency,
                     record::EventWriter& events, std::vector<std::string>* jobs) {
  const std::vector<ArrayChunk> chunks = split_array(work.array.jobs(), largest);
  const std::size_t all = chunks.size() * std::max(1U, work.array.links);
  for (std::size_t i = 0; i < all; ++i) {
    const std::string own = chunk_dependency(work, dependency, chunks.size(), *jobs);
    const auto link = static_cast<std::uint32_t>(i / chunks.size()) + 1;
    auto job =
        submit_chunk(work, chunk_order(work.request, work.array, chunks[i % chunks.size()], own, link), i);
    if (!job.ok() && jobs->empty()) return std::move(job).error();
    if (!job.ok()) {
      const std::string where = is_known(job.error()) ? format("array {} of {}", i + 1, all)
                                                      : format("{} of {} arrays are in the queue", i, all);
      return std::move(job).error().with_context(where);
    }
    jobs->push_back(*job);
    const record::Submitted taken{
        .scheduler_job = *job, .links = static_cast<int>(work.array.links), .after = work.request.job.after};
    STOKER_RETURN_IF_ERROR(write_event(events, taken).with_context(format("job {} is not recorded", *job)));
  }
  return {};
}

Status submit_all(const ArraySubmitContext& work, const std::string& dependency, record::EventWriter& events,
                  std::vector<std::string>* jobs) {
  const auto ask = [&]() -> Result<std::uint32_t> {
    STOKER_ASSIGN_OR_RETURN(largest, work.scheduler.max_array_tasks(work.deadline));
    if (largest < 1) return invalid("array.over: this cluster allows no job arrays (MaxArraySize)");
    return static_cast<std::uint32_t>(std::min<std::int64_t>(largest, kMaxJobs));
  };
  if (work.array.jobs() <= kUsualArray) {
    Status status = submit_chunks(work, kUsualArray, dependency, events, jobs);
    if (status.ok() || !jobs->empty() || !is_too_large(status)) return status;
  }
  STOKER_ASSIGN_OR_RETURN(largest, ask());
  return submit_chunks(work, largest, dependency, events, jobs);
}

// Ends a refused submission: a partial array is not useful, and `resume` submits all of it again.
Status abandon_submission(const ArraySubmitContext& work, const std::vector<std::string>& jobs,
                          const Status& refused, record::EventWriter& events) {
  if (!is_known(refused)) return refused;
  const std::vector<std::string> left = cancel_submitted(jobs, work.scheduler);
  std::string reason(refused.message());
  if (!left.empty()) {
    reason += format("; earlier jobs still queued, because scancel failed: job {}", join(left, ", "));
  } else if (!jobs.empty()) {
    reason += format("; earlier jobs cancelled: job {}", join(jobs, ", "));
  }
  if (jobs.empty() && !work.request.resumed) {
    discard_run(work.folder);
    return refused;
  }
  (void)write_event(events,
                    record::SubmitFailed{.reason = reason, .is_withdrawn = !jobs.empty() && left.empty()});
  Status error(refused.code(), reason);
  const std::string cure =
      left.empty() ? std::string(refused.cure()) : format("stoker cancel {}", work.folder.id());
  return cure.empty() ? error : std::move(error).cure("{}", cure);
}

std::vector<std::string> settings_for_stoker(const std::vector<std::string>& environment) {
  std::vector<std::string> kept;
  std::copy_if(environment.begin(), environment.end(), std::back_inserter(kept),
               [](const std::string& entry) { return entry.starts_with("STOKER_SET_"); });
  return kept;
}

// Slurm counts each task of an array as a job. sbatch would not refuse too many: it repeats its request for
// ever.
Status check_job_count(const TaskArrayFile& array, const std::string& table, slurm::Scheduler& scheduler,
                       Deadline deadline) {
  const std::uint64_t jobs = std::uint64_t{array.jobs()} * std::max(1U, array.links);
  if (jobs <= kUsualArray) return {};
  const auto asked = scheduler.max_jobs(deadline);
  const std::uint64_t most = asked.ok() && *asked > 1 ? static_cast<std::uint64_t>(*asked) : kMaxJobs;
  if (jobs < most) return {};
  if (array.links > 1) {
    return invalid(
               "{}: {} tasks in {} links need {} jobs, but the queue of all users holds fewer than {} "
               "(MaxJobCount)",
               table, array.chosen.size(), array.links, jobs, most)
        .cure("--set chain.links={}", std::max<std::uint64_t>(1, (most - 1) / array.jobs()));
  }
  const std::uint64_t fitting = (array.chosen.size() + most - 1) / most;
  return invalid("{}: {} need {}, but the queue of all users holds fewer than {} (MaxJobCount)", table,
                 counted(array.chosen.size(), "task"), counted(array.jobs(), "job"), most)
      .cure("--set array.bundle={}", std::max<std::uint64_t>(fitting, 2) * 2);
}

}  // namespace

bool needs_own_run(const job::Job& job) {
  const job::Environment& environment = job.environment;
  const bool is_bare = environment.modules.empty() && !environment.conda && !environment.container &&
                       !(environment.venv && !folder_exists(*environment.venv));
  return job.train || job.resources.world_size() > 1 || job.launcher == job::Launcher::torchrun || !is_bare ||
         job.is_staged();
}

Bundle choose_bundle(const job::Job& job, std::size_t tasks) {
  if (job.array.bundle) return {*job.array.bundle, ""};
  const bool is_short = job.resources.time && *job.resources.time < kShort;
  if (!is_short || job.chain.is_enabled() || needs_own_run(job)) return {};
  const auto wanted =
      static_cast<std::size_t>((kGoodLength + *job.resources.time - 1ns) / *job.resources.time);
  // Keeps enough jobs to run as many tasks side by side as allowed.
  const std::size_t width = job.array.at_once ? *job.array.at_once : kUsualWidth;
  const std::size_t size = std::min(wanted, tasks / std::max<std::size_t>(width, 1));
  if (size < 2) return {};
  return {static_cast<std::uint32_t>(size),
          format("{} is short for a separate job", duration_text(*job.resources.time))};
}

Result<TaskArrayFile> make_array(const Request& request) {
  const job::Job& job = request.job;
  STOKER_ASSIGN_OR_RETURN(table, job::read_tasks(*job.array.over));
  STOKER_ASSIGN_OR_RETURN(text, read_file(request.job_file));
  TaskArrayFile array;
  array.job_file = printable(request.job_file);
  array.text = std::move(text);
  array.folder = job_file_directory(request).parent_path();
  array.options = request.load;
  array.options.environment = settings_for_stoker(request.load.environment);
  if (array.options.current_directory.empty())
    array.options.current_directory = std::filesystem::current_path();
  array.tasks = std::move(table.tasks);
  array.chosen.resize(array.tasks.size());
  std::iota(array.chosen.begin(), array.chosen.end(), 1U);
  array.bundle = choose_bundle(job, array.tasks.size()).size;
  if (array.bundle > 1 && needs_own_run(job)) {
    return invalid("array.bundle: {}, but tasks of `train` or of several ranks cannot share a job ({})",
                   array.bundle, job.origins.where("array.bundle"));
  }
  array.links = static_cast<std::uint32_t>(links_of(request).count);
  for (std::uint32_t task = 1; task <= array.tasks.size(); ++task) {
    const auto each = array.job_of(task);
    if (!each.ok()) return Status(each.status()).with_context(table.name);
  }
  return array;
}

Result<std::string> array_script(const Request& request, const record::Attempt& attempt,
                                 const std::string& run_id, const TaskArrayFile& array) {
  STOKER_ASSIGN_OR_RETURN(
      predecessors, find_predecessors(request.job, job_file_directory(request), nullptr, Deadline::never()));
  const ArrayChunk first{0, std::min(array.jobs(), kUsualArray)};
  return batch_script(request, attempt, run_id,
                      chunk_order(request, array, first, dependency_of(predecessors)));
}

Result<ArraySubmission> submit_array(const Request& asked, const TaskArrayFile& array,
                                     slurm::Scheduler& scheduler, Deadline deadline) {
  STOKER_RETURN_IF_ERROR(check_submission(asked));
  const std::string table = asked.resumed
                                ? format("run {}", asked.resumed->id())
                                : printable(asked.job.array.over.value_or("array").filename().string());
  STOKER_RETURN_IF_ERROR(check_job_count(array, table, scheduler, deadline));
  STOKER_ASSIGN_OR_RETURN(loaded, load_environment(asked.job.environment, current_environment(), deadline));
  STOKER_RETURN_IF_ERROR(check_container(asked.job, variable(loaded.variables, "PATH")));
  STOKER_ASSIGN_OR_RETURN(command, rank_command(asked.job, asked.stoker, loaded.variables));
  STOKER_ASSIGN_OR_RETURN(predecessors,
                          find_predecessors(asked.job, job_file_directory(asked), &scheduler, deadline));
  Request request = asked;
  request.job.after = folders_of(predecessors);
  job::Job kept = request.job;
  kept.array = {};  // array.json has the whole array
  const std::string yaml = to_yaml(kept);
  auto made =
      request.resumed
          ? Result<record::RunFolder>(*request.resumed)
          : make_run_folder(request, {.command = command.words, .hosts = {}, .scheduler_job = ""}, yaml);
  if (!made.ok()) return std::move(made).error();
  STOKER_ASSIGN_OR_RETURN(attempt, claim_attempt(request, *made, "", yaml));
  STOKER_RETURN_IF_ERROR(write_array_file(attempt, array));
  STOKER_RETURN_IF_ERROR(make_directories(tasks_folder(*made)));
  STOKER_ASSIGN_OR_RETURN(events, record::EventWriter::open(attempt.submit_events()));
  STOKER_RETURN_IF_ERROR(
      write_event(events, record::Submitting{.host = record::this_process().host,
                                             .comment = comment_of(made->id(), attempt.number())}));
  // From here on, jobs may exist.
  const ArraySubmitContext work{request, array, *made, attempt, scheduler, deadline};
  std::vector<std::string> jobs;
  const Status status = submit_all(work, dependency_of(predecessors), events, &jobs);
  if (!status.ok()) return abandon_submission(work, jobs, with_key(status, request.job), events);
  return ArraySubmission{*std::move(made), attempt, std::move(jobs), std::move(predecessors)};
}

Result<ArrayResumption> resume_array(const record::RunFolder& folder, const RunLife& life,
                                     const std::vector<std::string>& settings) {
  // The same checks as for any run.
  STOKER_ASSIGN_OR_RETURN(request, resume_request(folder, life, {}));
  STOKER_ASSIGN_OR_RETURN(attempt, folder.last_attempt());
  STOKER_ASSIGN_OR_RETURN(array, read_array_file(attempt));
  const ArrayState state = read_array_state(folder, attempt, array);
  if (state.not_done.empty()) return invalid("run {}: all {} tasks are done", folder.id(), state.tasks);
  array.chosen = state.not_done;
  array.options.set.insert(array.options.set.end(), settings.begin(), settings.end());
  STOKER_ASSIGN_OR_RETURN(first, array.job_of(array.chosen.front()));
  first.record.directory = request.job.record.directory;
  first.name = request.job.name;
  first.after = request.job.after;
  request.job = std::move(first);
  array.bundle = choose_bundle(request.job, array.chosen.size()).size;
  array.links = static_cast<std::uint32_t>(links_of(request).count);
  return ArrayResumption{std::move(request), std::move(array)};
}

}  // namespace stoker::launch

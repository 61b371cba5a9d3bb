// An array gets into the queue so:
//   1. every task is read as a job, and everything that can be refused is refused
//   2. the run folder, attempts/<n>/ with array.json and the script, tasks/
//   3. the event `submitting`
//   4. sbatch, once; once more for each further piece of an array that is larger than the cluster's may be,
//      and all that again for each further link where the tasks are chains
//   5. the event `submitted` with each job's id; where a later one is refused, those before it are cancelled
//      again, and then comes `submit_failed`
// A crash between 3 and 5 leaves an open submission, as with a single job.
#include "launch/array/submit_array.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <numeric>

#include "base/file.h"
#include "launch/array/array_state.h"
#include "launch/new_run.h"
#include "launch/take_attempt.h"
#include "record/run_events.h"
#include "record/state.h"

namespace stoker::launch {
namespace {

using namespace std::chrono_literals;

// Slurm's own defaults: MaxArraySize 1001 bounds the index, MaxJobCount 10 000 the whole queue.
constexpr std::uint32_t kUsualArray = 1000;
constexpr std::uint32_t kMostJobs = 10'000;
// What is shorter costs the scheduler more than it computes.
constexpr Duration kShort = 5min;
constexpr Duration kGoodLength = 15min;
// Without a cap so many jobs are thought to run side by side.
constexpr std::size_t kUsualWidth = 64;
// What asking for the end of one job may take.
constexpr Duration kWithdrawing = 10s;

std::uint32_t cap_of(const Request& request, std::uint32_t jobs) {
  const std::uint32_t cap = request.job.array.at_once.value_or(0);
  return cap < jobs ? cap : 0;
}

// Jobs `from` + 1 to `from` + `count`.
struct Piece {
  std::uint32_t from = 0;
  std::uint32_t count = 0;
};

std::vector<Piece> pieces_of(std::uint32_t jobs, std::uint32_t largest) {
  std::vector<Piece> pieces;
  for (std::uint32_t from = 0; from < jobs; from += largest)
    pieces.push_back({from, std::min(largest, jobs - from)});
  return pieces;
}

JobOrder order_of_piece(const Request& request, const ArrayFile& array, const Piece& piece,
                        const std::string& dependency, std::uint32_t link = 1) {
  const std::uint32_t cap = cap_of(request, array.jobs());
  return {.array = format("1-{}{}", piece.count, cap > 0 ? format("%{}", cap) : ""),
          .dependency = dependency,
          .bundle = array.bundle,
          .from = piece.from,
          .link = link};
}

Path script_path(const record::Attempt& attempt, std::size_t piece) {
  return piece == 0 ? attempt.batch_script() : attempt.folder() / format("job-{}.sbatch", piece + 1);
}

bool is_too_large(const Status& refused) {
  return refused.code() == Code::invalid &&
         refused.message().find("Invalid job array specification") != std::string::npos;
}

// What one submission of an array works with.
struct Work {
  const Request& request;
  const ArrayFile& array;
  const record::RunFolder& folder;
  const record::Attempt& attempt;
  slurm::Scheduler& scheduler;
  Deadline deadline;
};

Result<std::string> submit_piece(const Work& work, const JobOrder& order, std::size_t number) {
  OK_OR_RETURN(script, batch_script(work.request, work.attempt, work.folder.id(), order));
  const Path path = script_path(work.attempt, number);
  RETURN_IF_ERROR(write_file(path, script));
  auto job = work.scheduler.submit(std::filesystem::absolute(path), work.deadline);
  const Code code = job.status().code();
  if (code == Code::timeout || code == Code::corrupt) {
    return std::move(job).error().with_context(
        format("run {}: whether it is in the queue is not known", work.folder.id()));
  }
  return job;
}

// Pieces under one cap come one after the other: two at a time would be twice as many. Without one a task's
// next link waits for that task's last alone.
std::string dependency_of_piece(const Work& work, const std::string& predecessors, std::size_t pieces,
                                const std::vector<std::string>& jobs) {
  if (cap_of(work.request, work.array.jobs()) > 0 && !jobs.empty())
    return format("{}{}afterany:{}", predecessors, predecessors.empty() ? "" : ",", jobs.back());
  return jobs.size() < pieces ? predecessors : format("aftercorr:{}", jobs[jobs.size() - pieces]);
}

// sbatch may have been heard, and its answer not: what is in the queue then is not known.
bool is_known(const Status& refused) {
  return refused.code() != Code::timeout && refused.code() != Code::corrupt;
}

// Those of the jobs that could not be cancelled. The last one goes first: it may wait for the end of those
// before it.
std::vector<std::string> withdraw(const std::vector<std::string>& jobs, slurm::Scheduler& scheduler) {
  std::vector<std::string> left;
  for (auto job = jobs.rbegin(); job != jobs.rend(); ++job) {
    const Status gone = scheduler.cancel(*job, Deadline::after(kWithdrawing));
    if (!gone.ok() && gone.code() != Code::not_found) left.insert(left.begin(), *job);
  }
  return left;
}

// Queues piece after piece; `jobs` has those that were taken, also where one was refused.
Status submit_pieces(const Work& work, std::uint32_t largest, const std::string& dependency,
                     record::EventWriter& events, std::vector<std::string>* jobs) {
  const std::vector<Piece> pieces = pieces_of(work.array.jobs(), largest);
  const std::size_t all = pieces.size() * std::max(1U, work.array.links);
  for (std::size_t i = 0; i < all; ++i) {
    const std::string own = dependency_of_piece(work, dependency, pieces.size(), *jobs);
    const auto link = static_cast<std::uint32_t>(i / pieces.size()) + 1;
    auto job =
        submit_piece(work, order_of_piece(work.request, work.array, pieces[i % pieces.size()], own, link), i);
    if (!job.ok() && jobs->empty()) return std::move(job).error();
    if (!job.ok()) {
      const std::string where = is_known(job.error()) ? format("array {} of {}", i + 1, all)
                                                      : format("{} of {} arrays are in the queue", i, all);
      return std::move(job).error().with_context(where);
    }
    jobs->push_back(*job);
    const record::Submitted taken{
        .scheduler_job = *job, .links = static_cast<int>(work.array.links), .after = work.request.job.after};
    RETURN_IF_ERROR(write_event(events, taken).with_context(format("job {} is not recorded", *job)));
  }
  return {};
}

Status submit_all(const Work& work, const std::string& dependency, record::EventWriter& events,
                  std::vector<std::string>* jobs) {
  const auto ask = [&]() -> Result<std::uint32_t> {
    OK_OR_RETURN(largest, work.scheduler.largest_array(work.deadline));
    if (largest < 1) return invalid("array.over: this cluster takes no arrays (MaxArraySize)");
    return static_cast<std::uint32_t>(std::min<std::int64_t>(largest, kMostJobs));
  };
  if (work.array.jobs() <= kUsualArray) {
    Status status = submit_pieces(work, kUsualArray, dependency, events, jobs);
    if (status.ok() || !jobs->empty() || !is_too_large(status)) return status;
  }
  OK_OR_RETURN(largest, ask());
  return submit_pieces(work, largest, dependency, events, jobs);
}

// The end of a submission that was refused: a part of an array is none, and `resume` submits all of it again.
Status give_up(const Work& work, const std::vector<std::string>& jobs, const Status& refused,
               record::EventWriter& events) {
  if (!is_known(refused)) return refused;
  const std::vector<std::string> left = withdraw(jobs, work.scheduler);
  std::string reason(refused.message());
  if (!left.empty()) {
    reason += format("; taken before, in the queue and not to be cancelled: job {}", join(left, ", "));
  } else if (!jobs.empty()) {
    reason += format("; taken before and cancelled again: job {}", join(jobs, ", "));
  }
  (void)write_event(events,
                    record::SubmitFailed{.reason = reason, .is_withdrawn = !jobs.empty() && left.empty()});
  Status told(refused.code(), reason);
  const std::string cure =
      left.empty() ? std::string(refused.cure()) : format("stoker cancel {}", work.folder.id());
  return cure.empty() ? told : std::move(told).cure("{}", cure);
}

std::vector<std::string> settings_for_stoker(const std::vector<std::string>& environment) {
  std::vector<std::string> kept;
  std::copy_if(environment.begin(), environment.end(), std::back_inserter(kept),
               [](const std::string& entry) { return entry.starts_with("STOKER_SET_"); });
  return kept;
}

Status check_flood(const ArrayFile& array, const std::string& table) {
  const std::uint64_t jobs = std::uint64_t{array.jobs()} * std::max(1U, array.links);
  if (jobs <= kMostJobs) return {};
  if (array.links > 1) {
    return invalid(
               "{}: {} tasks in {} links are {} jobs, and a queue holds {} of all users together "
               "(MaxJobCount)",
               table, array.chosen.size(), array.links, jobs, kMostJobs)
        .cure("--set chain.links={}", std::max(1U, kMostJobs / array.jobs()));
  }
  const std::size_t fitting = (array.chosen.size() + kMostJobs - 1) / kMostJobs;
  return invalid("{}: {} tasks are {} jobs, and a queue holds {} of all users together (MaxJobCount)", table,
                 array.chosen.size(), array.jobs(), kMostJobs)
      .cure("--set array.bundle={}", std::max<std::size_t>(fitting, 2) * 2);
}

}  // namespace

bool is_run_of_its_own(const job::Job& job) {
  const job::Environment& environment = job.environment;
  const bool is_bare = environment.modules.empty() && !environment.conda && !environment.container &&
                       !(environment.venv && !folder_exists(*environment.venv));
  return job.train || job.resources.world_size() > 1 || job.launcher == job::Launcher::torchrun || !is_bare ||
         job.stage.is_wanted();
}

Bundle choose_bundle(const job::Job& job, std::size_t tasks) {
  if (job.array.bundle) return {*job.array.bundle, ""};
  const bool is_short = job.resources.time && *job.resources.time < kShort;
  if (!is_short || job.chain.is_on() || is_run_of_its_own(job)) return {};
  const auto wanted =
      static_cast<std::size_t>((kGoodLength + *job.resources.time - 1ns) / *job.resources.time);
  // Never so many that fewer run side by side than may.
  const std::size_t width = job.array.at_once ? *job.array.at_once : kUsualWidth;
  const std::size_t size = std::min(wanted, tasks / std::max<std::size_t>(width, 1));
  if (size < 2) return {};
  return {static_cast<std::uint32_t>(size),
          format("{} is short for a job of its own", duration_text(*job.resources.time))};
}

Result<ArrayFile> make_array(const Request& request) {
  const job::Job& job = request.job;
  OK_OR_RETURN(table, job::read_tasks(*job.array.over));
  OK_OR_RETURN(text, read_file(request.job_file));
  ArrayFile array;
  array.job_file = printable(request.job_file);
  array.text = std::move(text);
  array.folder = folder_of_job_file(request).parent_path();
  array.options = request.load;
  array.options.environment = settings_for_stoker(request.load.environment);
  if (array.options.current_directory.empty())
    array.options.current_directory = std::filesystem::current_path();
  array.tasks = std::move(table.tasks);
  array.chosen.resize(array.tasks.size());
  std::iota(array.chosen.begin(), array.chosen.end(), 1U);
  array.bundle = choose_bundle(job, array.tasks.size()).size;
  if (array.bundle > 1 && is_run_of_its_own(job)) {
    return invalid("array.bundle: {}, but tasks of `train` or of several ranks share no job ({})",
                   array.bundle, job.origins.where("array.bundle"));
  }
  array.links = static_cast<std::uint32_t>(links_of(request).count);
  RETURN_IF_ERROR(check_flood(array, table.name));
  for (std::uint32_t task = 1; task <= array.tasks.size(); ++task) {
    const auto each = array.job_of(task);
    if (!each.ok()) return Status(each.status()).with_context(table.name);
  }
  return array;
}

Result<std::string> array_script(const Request& request, const record::Attempt& attempt,
                                 const std::string& run_id, const ArrayFile& array) {
  OK_OR_RETURN(waits_for,
               find_predecessors(request.job, folder_of_job_file(request), nullptr, Deadline::never()));
  const Piece first{0, std::min(array.jobs(), kUsualArray)};
  return batch_script(request, attempt, run_id,
                      order_of_piece(request, array, first, dependency_of(waits_for)));
}

Result<ArraySubmission> submit_array(const Request& asked, const ArrayFile& array,
                                     slurm::Scheduler& scheduler, Deadline deadline) {
  RETURN_IF_ERROR(check_submission(asked));
  OK_OR_RETURN(command, rank_command(asked.job, asked.stoker));
  OK_OR_RETURN(waits_for, find_predecessors(asked.job, folder_of_job_file(asked), &scheduler, deadline));
  Request request = asked;
  request.job.after = folders_of(waits_for);
  job::Job kept = request.job;
  kept.array = {};  // array.json has it all
  const std::string yaml = to_yaml(kept);
  auto made = request.resumed
                  ? Result<record::RunFolder>(*request.resumed)
                  : make_run_folder(request, {.command = command, .hosts = {}, .scheduler_job = ""}, yaml);
  if (!made.ok()) return std::move(made).error();
  OK_OR_RETURN(attempt, take_attempt(request, *made, "", yaml));
  RETURN_IF_ERROR(write_array_file(attempt, array));
  RETURN_IF_ERROR(make_directories(tasks_folder(*made)));
  OK_OR_RETURN(events, record::EventWriter::open(attempt.submit_events()));
  RETURN_IF_ERROR(
      write_event(events, record::Submitting{.host = record::this_process().host,
                                             .comment = comment_of(made->id(), attempt.number())}));
  // After this point jobs may exist.
  const Work work{request, array, *made, attempt, scheduler, deadline};
  std::vector<std::string> jobs;
  const Status status = submit_all(work, dependency_of(waits_for), events, &jobs);
  if (!status.ok()) return give_up(work, jobs, with_key(status, request.job), events);
  return ArraySubmission{*std::move(made), attempt, std::move(jobs), std::move(waits_for)};
}

Result<ArrayResumption> resume_array(const record::RunFolder& folder, const RunLife& life,
                                     const std::vector<std::string>& settings) {
  // The same refusals as for any run.
  OK_OR_RETURN(request, resume_request(folder, life, {}));
  OK_OR_RETURN(attempt, folder.last_attempt());
  OK_OR_RETURN(array, read_array_file(attempt));
  const ArrayState state = look_at_tasks(folder, attempt, array);
  if (state.not_done.empty()) return invalid("run {}: all its {} tasks are done", folder.id(), state.tasks);
  array.chosen = state.not_done;
  array.options.set.insert(array.options.set.end(), settings.begin(), settings.end());
  OK_OR_RETURN(first, array.job_of(array.chosen.front()));
  first.record.directory = request.job.record.directory;
  first.name = request.job.name;
  first.after = request.job.after;
  request.job = std::move(first);
  array.bundle = choose_bundle(request.job, array.chosen.size()).size;
  array.links = static_cast<std::uint32_t>(links_of(request).count);
  RETURN_IF_ERROR(check_flood(array, format("run {}", folder.id())));
  return ArrayResumption{std::move(request), std::move(array)};
}

}  // namespace stoker::launch

// Protocol:
//   1. the ranks compare their requests and merge the steps that each of them sees
//   2. every rank restores the newest step; a tensor changes only after all bytes are verified
//   3. the ranks exchange their results. A step that a rank could not restore is skipped by all of them: back
//      to 2 with the next older step, which overwrites the ranks that had restored the skipped one
// If no step is left, all ranks fail, so that no rank starts from the beginning alone.
#include "train/session/agreed_restore.h"

#include <algorithm>
#include <functional>
#include <set>

#include "base/file.h"
#include "checkpoint/layout.h"
#include "checkpoint/manifest.h"
#include "checkpoint/read/catalog.h"

namespace stoker::train {
namespace {

using namespace std::chrono_literals;

constexpr Duration kPollEvery = 200ms;

// A step folder that any rank sees.
struct StepCandidate {
  Path folder;
  bool is_seen_here = false;
};

std::string step_name(const Path& step) { return printable(step.filename().string()); }

// The error of the first rank that failed: errors are JSON objects, and nothing else starts with a brace.
Status first_error(const std::vector<std::string>& votes) {
  for (std::size_t rank = 0; rank < votes.size(); ++rank) {
    if (votes[rank].starts_with('{')) return checkpoint::parse_failure(format("rank {}", rank), votes[rank]);
  }
  return {};
}

// The names of the steps that this rank sees.
Result<std::vector<std::string>> visible_steps(const ResumeRequest& request) {
  std::vector<std::string> names;
  if (!request.step.empty()) {
    if (folder_exists(request.step)) names.push_back(request.step.filename().string());
  } else if (!request.directory.empty()) {
    STOKER_ASSIGN_OR_RETURN(steps, checkpoint::step_folders(request.directory));
    for (const Step step : steps) names.push_back(checkpoint::step_folder_name(step));
  }
  return names;
}

// "step-20", "the newest step" or "the beginning".
std::string request_text(const ResumeRequest& request) {
  if (!request.step.empty()) return step_name(request.step);
  return request.directory.empty() ? "the beginning" : "the newest step";
}

Status compare_requests(const std::vector<std::vector<std::string>>& openings) {
  for (std::size_t rank = 1; rank < openings.size(); ++rank) {
    if (openings[rank].front() != openings[0].front())
      return invalid("checkpoint: rank {} resumes from {}, but rank 0 from {} (STOKER_RESUME)", rank,
                     openings[rank].front(), openings[0].front());
  }
  return {};
}

// Steps of all ranks, the newest first.
Result<std::vector<StepCandidate>> find_candidates(const GatherTexts& gather, const ResumeRequest& request) {
  const auto own = visible_steps(request);
  std::string vote = own.ok() ? request_text(request) : checkpoint::failure_text(own.error());
  if (own.ok()) {
    for (const std::string& name : *own) vote += "\n" + name;
  }
  STOKER_ASSIGN_OR_RETURN(votes, gather(vote));
  if (!own.ok() && votes.size() == 1) return own.error();
  STOKER_RETURN_IF_ERROR(first_error(votes));
  std::vector<std::vector<std::string>> openings;
  for (const std::string& text : votes) {
    std::vector<std::string>& lines = openings.emplace_back();
    for (const std::string_view line : split(text, '\n')) lines.emplace_back(line);
  }
  STOKER_RETURN_IF_ERROR(compare_requests(openings));
  if (!request.step.empty()) {
    const bool is_seen = std::ranges::any_of(openings, [](const auto& lines) { return lines.size() > 1; });
    return std::vector<StepCandidate>{{request.step, !is_seen || !own->empty()}};
  }
  std::set<Step, std::greater<>> steps;
  for (const auto& lines : openings) {
    for (std::size_t i = 1; i < lines.size(); ++i) {
      if (const auto step = checkpoint::step_of_folder(lines[i])) steps.insert(*step);
    }
  }
  std::vector<StepCandidate> candidates;
  for (const Step step : steps) {
    const std::string name = checkpoint::step_folder_name(step);
    candidates.push_back({request.directory / name, std::ranges::find(*own, name) != own->end()});
  }
  return candidates;
}

void await_folder(const Path& folder, Duration limit) {
  RealClock clock;
  const Deadline deadline = Deadline::after(limit);
  while (!folder_exists(folder) && !deadline.passed()) {
    (void)list_directory(folder.parent_path());  // the client of a network filesystem then asks its server
    clock.sleep(kPollEvery);
  }
}

// A step may be replaced by a different save of the same name while ranks read it.
Status compare_saves(const Path& folder, const std::vector<std::string>& votes) {
  for (std::size_t rank = 1; rank < votes.size(); ++rank) {
    if (votes[rank] != votes[0])
      return corrupt("{}: rank {} has a different save of it than rank 0 ({}, {})", step_name(folder), rank,
                     printable(votes[rank]), printable(votes[0]));
  }
  return {};
}

// Ok if every rank has restored the same save. Otherwise the same error on all ranks.
Status restore_on_all(const GatherTexts& gather, const Path& folder, const RestoreStep& restore) {
  const Result<std::string> own = restore(folder);
  STOKER_ASSIGN_OR_RETURN(votes, gather(own.ok() ? *own : checkpoint::failure_text(own.error())));
  if (votes.size() == 1) return own.status();
  STOKER_RETURN_IF_ERROR(first_error(votes));
  return compare_saves(folder, votes);
}

}  // namespace

Result<AgreedStep> restore_agreed(const GatherTexts& gather, const ResumeRequest& request,
                                  const RestoreStep& restore) {
  STOKER_ASSIGN_OR_RETURN(candidates, find_candidates(gather, request));
  AgreedStep agreed;
  for (const StepCandidate& candidate : candidates) {
    if (!candidate.is_seen_here) await_folder(candidate.folder, request.appears_within);
    const Status restored = restore_on_all(gather, candidate.folder, restore);
    if (restored.ok()) {
      agreed.folder = candidate.folder;
      return agreed;
    }
    const bool is_skippable = restored.code() == Code::corrupt || restored.code() == Code::not_found;
    if (!request.step.empty() || !is_skippable) return restored;
    agreed.skipped.push_back({candidate.folder, std::string(restored.message())});
  }
  if (agreed.skipped.empty()) return agreed;
  return checkpoint::no_valid_step(request.directory, agreed.skipped);
}

}  // namespace stoker::train

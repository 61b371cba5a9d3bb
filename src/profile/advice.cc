#include "profile/advice.h"

namespace stoker::profile {
namespace {

struct Suggestion {
  Message what;
  std::string command;
};

Suggestion about_data(const AdviceContext& context, TimeSource source) {
  if (source == TimeSource::trainer && !context.dataset.empty())
    return {message("find faster settings of the loader"),
            "stoker data bench " + shell_quote(context.dataset)};
  return {message("use more loader workers, or load ahead: num_workers, prefetch_factor, stoker.DataLoader"),
          "stoker data bench --help"};
}

Suggestion about_communication(const AdviceContext& context, TimeSource source) {
  if (context.hosts > 1 && !context.job.empty())
    return {message("measure the network between the nodes"), "stoker hello " + shell_quote(context.job)};
  if (source == TimeSource::trainer && !context.job.empty())
    return {message("exchange gradients less often"),
            format("stoker run {} --set train.accumulate=2", shell_quote(context.job))};
  return {message("exchange less, or less often: no_sync() with gradient accumulation, bf16 compression of "
                  "gradients, larger batches"),
          ""};
}

Suggestion about_balance(const AdviceContext& context, const Profile& profile) {
  const RankProfile* slow = profile.slowest_rank();
  return {
      message("rank {} is the slowest: compare its node with the nodes of its peers", slow ? slow->rank : 0),
      context.run.empty() ? "" : "stoker report " + shell_quote(context.run)};
}

Suggestion about_other(const AdviceContext& context, TimeSource source) {
  if (source == TimeSource::trainer && !context.job.empty())
    return {message("record a timeline of some steps, then open the report"),
            format("stoker run {} --set record.trace=20", shell_quote(context.job))};
  if (source == TimeSource::program) return {message("name more parts of the loop with p.part()"), ""};
  return {message("no operator runs in this time: look for Python code, I/O and locks in the loop"), ""};
}

Suggestion about(ProfilePart part, const AdviceContext& context, const Profile& profile) {
  switch (part) {
    case ProfilePart::data:
      return about_data(context, profile.source);
    case ProfilePart::communication:
      return about_communication(context, profile.source);
    case ProfilePart::host_to_device:
      return {message("copy batches ahead: pin_memory=True and .to(device, non_blocking=True)"), ""};
    case ProfilePart::checkpoint:
      return {message("save less often, or in the background"),
              context.run.empty() ? "" : "stoker checkpoint list " + shell_quote(context.run)};
    case ProfilePart::copies:
      return {message("copy less from the GPU in each step: .item(), .cpu() and printed tensors"), ""};
    case ProfilePart::host:
      return {message("give the GPU more work per launch: larger batches, torch.compile or CUDA graphs"), ""};
    default:
      return about_other(context, profile.source);
  }
}

}  // namespace

void advise(const AdviceContext& context, Profile& profile) {
  if (profile.gains.empty()) return;
  const Gain& largest = profile.gains.front();
  Suggestion advice = largest.part ? about(*largest.part, context, profile) : about_balance(context, profile);
  profile.advice = std::move(advice.what);
  profile.command = std::move(advice.command);
}

}  // namespace stoker::profile

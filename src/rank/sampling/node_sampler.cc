#include "rank/sampling/node_sampler.h"

#include "record/run_events.h"

namespace stoker::rank {

namespace {

// "0:4711,1:4712".
std::string to_text(const std::vector<observe::RankProcess>& ranks) {
  std::string text;
  for (const observe::RankProcess& rank : ranks)
    text += format("{}{}:{}", text.empty() ? "" : ",", rank.rank, rank.pid);
  return text;
}

Result<std::vector<observe::RankProcess>> parse_ranks(std::string_view text) {
  std::vector<observe::RankProcess> ranks;
  for (std::string_view entry : split(text, ',')) {
    const std::size_t colon = std::min(entry.find(':'), entry.size());
    std::int64_t rank = 0;
    std::int64_t pid = 0;
    const bool is_valid = parse_number(entry.substr(0, colon), &rank) && colon < entry.size() &&
                          parse_number(entry.substr(colon + 1), &pid) && rank >= 0 && rank < 1'000'000 &&
                          pid > 0;
    if (!is_valid) return invalid("sample: '{}' is not a rank and its process", printable(entry));
    ranks.push_back({static_cast<int>(rank), pid});
  }
  return ranks;
}

}  // namespace

net::ControlMessage to_message(const SamplingRequest& request) {
  net::ControlMessage message{"sample", {}};
  message.with("node", std::int64_t{request.node.number}).with("host", request.node.host);
  message.with("every_s", Seconds(request.every).count());
  return message.with("ranks", to_text(request.ranks));
}

Result<SamplingRequest> parse_sampling_request(const net::ControlMessage& message) {
  SamplingRequest request;
  const auto node = message.integer("node");
  const auto every_s = message.number("every_s");
  if (!node || *node < 0 || *node > 1'000'000) return invalid("sample: no node");
  if (!every_s || !(*every_s >= 0.01 && *every_s <= 1e6)) return invalid("sample: no interval");
  request.node = {static_cast<int>(*node), std::string(message.text("host"))};
  request.every = std::chrono::duration_cast<Duration>(Seconds(*every_s));
  STOKER_ASSIGN_OR_RETURN(ranks, parse_ranks(message.text("ranks")));
  request.ranks = std::move(ranks);
  return request;
}

Result<std::unique_ptr<NodeSampler>> NodeSampler::start(const record::Attempt& attempt,
                                                        const SamplingRequest& request,
                                                        record::EventWriter& events) {
  STOKER_ASSIGN_OR_RETURN(thread, observe::SamplerThread::start(attempt.system(request.node.number),
                                                                request.ranks, {.every = request.every}));
  // A full disk loses this event, like all others, and the run continues.
  (void)write_event(events, record::NodeSampled{.node = request.node.number,
                                                .host = request.node.host,
                                                .cpus = thread->sources().cpus,
                                                .sources = thread->sources().texts});
  record_gpus(thread->gpus(), request.node, events);
  return std::unique_ptr<NodeSampler>(new NodeSampler(std::move(thread), request.node, events));
}

std::vector<std::string> NodeSampler::record_faults() {
  return record_gpu_faults(thread_->take_xids(), thread_->gpus(), node_, events_);
}

}  // namespace stoker::rank

#include "rank/group/group_sampling.h"

#include <algorithm>
#include <iterator>

namespace stoker::rank {

namespace {

constexpr Duration kDelay = std::chrono::milliseconds(400);
constexpr Duration kSuccessorDelay = std::chrono::seconds(2);

}  // namespace

GroupSampling::GroupSampling(const Plan& plan, record::Attempt attempt, Duration every,
                             record::EventWriter& events)
    : plan_(plan),
      attempt_(std::move(attempt)),
      every_(every),
      events_(events),
      hosts_(plan.hosts),
      pids_(static_cast<std::size_t>(plan.world_size().value)),
      has_ended_(pids_.size()),
      sampling_rank_(static_cast<std::size_t>(plan.nodes), -1),
      continue_at_(sampling_rank_.size()) {
  hosts_.resize(static_cast<std::size_t>(plan.nodes));
  for (int r = 0; r < plan.world_size().value; ++r) node_of_.push_back(plan.placement_of(Rank(r)).node);
}

void GroupSampling::handle_rank_start(Rank rank, const std::string& host, std::int64_t pid) {
  const auto index = static_cast<std::size_t>(rank.value);
  if (pid > 0) pids_[index] = pid;
  const auto node = static_cast<std::size_t>(node_of_[index]);
  if (node < hosts_.size()) hosts_[node] = host;
}

void GroupSampling::handle_rank_exit(Rank rank, Duration age) {
  has_ended_[static_cast<std::size_t>(rank.value)] = true;
  const auto node = static_cast<std::size_t>(node_of_[static_cast<std::size_t>(rank.value)]);
  if (sampling_rank_[node] == rank.value) continue_at_[node] = age + kSuccessorDelay;
}

void GroupSampling::start_when_due(Duration age, const Peers& peers) {
  for (std::size_t node = 0; node < continue_at_.size(); ++node) {
    if (!continue_at_[node] || age < *continue_at_[node]) continue;
    continue_at_[node].reset();
    start_on(static_cast<int>(node), peers);
  }
  const bool are_all_here = std::ranges::all_of(pids_, [](std::int64_t pid) { return pid > 0; });
  if (is_started_ || every_ <= Duration::zero() || !are_all_here || age < kDelay) return;
  is_started_ = true;
  if (plan_.start == StartMethod::local) return start_here();
  for (int node = 0; node < plan_.nodes; ++node) start_on(node, peers);
}

SamplingRequest GroupSampling::request_of(int node) const {
  SamplingRequest request{
      .node = {node, hosts_[static_cast<std::size_t>(node)]}, .ranks = {}, .every = every_};
  const bool is_local = plan_.start == StartMethod::local;
  for (std::size_t r = 0; r < pids_.size(); ++r) {
    const int rank = static_cast<int>(r);
    if (is_local || node_of_[r] == node) request.ranks.push_back({rank, pids_[r]});
  }
  return request;
}

void GroupSampling::start_here() {
  auto sampler = NodeSampler::start(attempt_, request_of(0), events_);
  if (sampler.ok()) {
    sampler_ = std::move(*sampler);
  } else if (sampler.status().code() != Code::no_space) {  // a full disk is reported for the logs
    lines_.push_back(format("no samples of this machine: {}", sampler.error().message()));
  }
}

void GroupSampling::start_on(int node, const Peers& peers) {
  const SamplingRequest request = request_of(node);
  int& chosen = sampling_rank_[static_cast<std::size_t>(node)];
  if (plan_.has_torchrun) return peers.send_to_node(node, to_message(request));
  const auto running = std::ranges::find_if(request.ranks, [&](const observe::RankProcess& rank) {
    return !has_ended_[static_cast<std::size_t>(rank.rank)];
  });
  chosen = running == request.ranks.end() ? -1 : running->rank;
  if (chosen >= 0) peers.send_to_rank(Rank(chosen), to_message(request));
}

void GroupSampling::stop() {
  if (!sampler_) return;
  sampler_->stop();
  std::ranges::move(sampler_->record_faults(), std::back_inserter(lines_));
  sampler_.reset();
}

std::vector<std::string> GroupSampling::take_lines() {
  if (sampler_) std::ranges::move(sampler_->record_faults(), std::back_inserter(lines_));
  return std::exchange(lines_, {});
}

}  // namespace stoker::rank

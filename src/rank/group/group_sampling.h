// Has each node of a run sampled by one process: by this one if the ranks are local; otherwise by the
// `stoker rank` of torchrun on each node, or by that of the first running rank there. Used by RankGroup. One
// thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/message.h"
#include "rank/plan.h"
#include "rank/sampling/node_sampler.h"
#include "stoker/time.h"

namespace stoker::rank {

class GroupSampling {
 public:
  /// Sends to the `stoker rank` of a rank, or to that of torchrun on a node.
  struct Peers {
    std::function<void(Rank, const net::ControlMessage&)> send_to_rank;
    std::function<void(int node, const net::ControlMessage&)> send_to_node;
  };

  /// `plan` and `events` must outlive the object. No samples if `every` is 0.
  GroupSampling(const Plan& plan, record::Attempt attempt, Duration every, record::EventWriter& events);

  void handle_rank_start(Rank rank, const std::string& host, std::int64_t pid);
  /// If the rank samples its node, a peer continues 2 s later: at the end of a run, all ranks exit together.
  /// `age` is that of the run.
  void handle_rank_exit(Rank rank, Duration age);
  /// Starts once all ranks have started: short runs need no samples. Also lets peers continue. Call it often.
  void start_when_due(Duration age, const Peers& peers);
  /// Ends the samples of this process.
  void stop();
  /// Lines for the user: GPU errors of this machine, or why there are no samples.
  std::vector<std::string> take_lines();

 private:
  SamplingRequest request_of(int node) const;
  void start_here();
  void start_on(int node, const Peers& peers);

  const Plan& plan_;
  const record::Attempt attempt_;
  const Duration every_;
  record::EventWriter& events_;
  std::vector<std::string> hosts_;                    // by node
  std::vector<int> node_of_;                          // by rank
  std::vector<std::int64_t> pids_;                    // by rank; 0: not started
  std::vector<bool> has_ended_;                       // by rank
  std::vector<int> sampling_rank_;                    // by node; -1: none
  std::vector<std::optional<Duration>> continue_at_;  // by node: the age at which a peer continues
  bool is_started_ = false;
  std::unique_ptr<NodeSampler> sampler_;
  std::vector<std::string> lines_;
};

}  // namespace stoker::rank

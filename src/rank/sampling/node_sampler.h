// Samples one node of a run in a thread, and records the sources, the GPUs and their errors as events. It
// runs in `stoker run` for ranks on the same machine, otherwise in one `stoker rank` of each node. One
// thread.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "net/message.h"
#include "observe/system_sampler.h"
#include "rank/sampling/gpu_events.h"
#include "record/events.h"
#include "record/run_folder.h"

namespace stoker::rank {

/// What to sample: a node and its ranks.
struct SamplingRequest {
  SampledNode node;
  std::vector<observe::RankProcess> ranks;
  Duration every{0};
};
/// Kind "sample". REQUIRES: fewer than 8192 ranks.
net::ControlMessage to_message(const SamplingRequest& request);
/// Invalid for damaged fields.
Result<SamplingRequest> parse_sampling_request(const net::ControlMessage& message);

class NodeSampler {
 public:
  /// Starts to write the node's file of samples. `events` must outlive the object.
  static Result<std::unique_ptr<NodeSampler>> start(const record::Attempt& attempt,
                                                    const SamplingRequest& request,
                                                    record::EventWriter& events);

  /// Records the GPU errors since the last call. Returns a line for the user per error.
  std::vector<std::string> record_faults();
  /// Ends the samples. A last record_faults() follows.
  void stop() { thread_->stop(); }

 private:
  NodeSampler(std::unique_ptr<observe::SamplerThread> thread, SampledNode node, record::EventWriter& events)
      : thread_(std::move(thread)), node_(std::move(node)), events_(events) {}

  std::unique_ptr<observe::SamplerThread> thread_;
  SampledNode node_;
  record::EventWriter& events_;
};

}  // namespace stoker::rank

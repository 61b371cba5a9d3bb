// Where torchrun starts the ranks, a `stoker rank` on each node starts torchrun: it waits until all nodes are
// there, learns where they meet, and tells how its torchrun ended. The ranks below are watched as all others.
#include <algorithm>
#include <csignal>

#include "rank/group/rank_group.h"

namespace stoker::rank {

using net::WorldEvent;

void RankGroup::hear_nodes() {
  if (!nodes_) return;
  for (const WorldEvent& event : nodes_->take()) {
    switch (event.kind) {
      case WorldEvent::Kind::joined:
        if (nodes_->roster().is_complete() && stopping_.empty())
          nodes_->broadcast(welcome_to(nodes_->roster()));
        break;
      case WorldEvent::Kind::message:
        if (event.message.kind == "ended") node_ended(event.rank.value, parse_ended(event.message));
        break;
      case WorldEvent::Kind::refused:
        refuse(event);
        break;
      case WorldEvent::Kind::left:
        break;  // its ranks are heard of by themselves; those that never came are missed
    }
  }
}

void RankGroup::node_ended(int node, const Ended& ended) {
  hear_world();  // what its ranks said last comes before
  for (RankStory& member : stories_) {
    if (member.ended || !stopping_.empty() || options_.plan.place_of(member.rank).node != node) continue;
    const std::string words = ended.last_line.empty() ? "" : ": " + ended.last_line;
    const int code = ended.exit.shell_code();
    accuse(member,
           format("{}: its node's torchrun left: {}{}", member.joined ? "was lost" : "never started",
                  reason(ended), words),
           code == 0 ? 1 : code);
  }
}

// Once no rank is left torchrun has nothing to do, but takes seconds to leave, and minutes where it waits for
// another node's. Before they have come it is ended with all that it has started.
void RankGroup::end_nodes() {
  if (!nodes_ || has_ended_nodes_) return;
  const bool are_over = have_all_ended();
  if (!are_over && (stopping_.empty() || welcomed_)) return;
  has_ended_nodes_ = true;
  net::Message stop{"stop", {}};
  nodes_->broadcast(are_over ? net::Message{"leave", {}} : stop.with("signal", std::int64_t{SIGTERM}));
}

}  // namespace stoker::rank

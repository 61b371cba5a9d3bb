#include "rank/group/group.h"

#include <csignal>

#include "rank/group/rank_group.h"
#include "rank/process/process_tree.h"
#include "record/state.h"

namespace stoker::rank {
namespace {

// For the events of the end, when output of the ranks has filled the disk.
constexpr std::uint64_t kReservedBytes = 8192;
constexpr std::uint64_t kReservedBytesPerRank = 1024;

}  // namespace

Result<Ending> run_group(const GroupOptions& options) {
  std::signal(SIGPIPE, SIG_IGN);
  STOKER_RETURN_IF_ERROR(become_subreaper());
  // Blocked before any process starts, so that this process handles Ctrl-C.
  STOKER_ASSIGN_OR_RETURN(signals, SignalFd::open({SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD}));
  const net::ListenScope reach =
      options.plan.start == StartMethod::srun ? net::ListenScope::network : net::ListenScope::loopback;
  STOKER_ASSIGN_OR_RETURN(server,
                          net::WorldServer::listen(options.plan.world_size(), random_name(24), reach));
  std::optional<net::WorldServer> nodes;
  if (options.plan.has_torchrun) {
    STOKER_ASSIGN_OR_RETURN(listening,
                            net::WorldServer::listen(WorldSize(options.plan.nodes), random_name(24), reach));
    nodes = std::move(listening);
  }
  STOKER_ASSIGN_OR_RETURN(events, record::EventWriter::open(options.attempt.node_events(0)));
  GroupOptions own = options;
  own.start.supervisor = record::this_process();
  if (!own.has_begun) STOKER_RETURN_IF_ERROR(write_event(events, own.start));
  events.reserve(kReservedBytes +
                 kReservedBytesPerRank * static_cast<std::uint64_t>(options.plan.world_size().value));
  RankGroup group(own, {std::move(server), std::move(nodes)}, std::move(signals), std::move(events));
  return group.run();
}

}  // namespace stoker::rank

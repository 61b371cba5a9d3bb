#include "cli/life/node_files.h"

#include "stage/broadcast/tree_list.h"

namespace stoker::cli {

Result<std::string> NodeFiles::list(Progress& progress) {
  STOKER_ASSIGN_OR_RETURN(list, stage::list_request(request_, progress));
  list_ = encode_tree_list(list);
  return to_line(stage::head_of(list_));
}

Result<stage::TransferStats> NodeFiles::place(const Path& folder,
                                              const std::optional<stage::BroadcastNodes>& nodes,
                                              NodePeers& peers, Progress& progress) {
  if (!any()) return stage::TransferStats();
  if (!nodes) return stage::stage_in(request_, folder, progress);
  const auto head = node_ == 0 ? stage::head_of(list_) : peers.wait_for_list(progress);
  if (!head) return cancelled("stage: interrupted");
  broadcast_.emplace(request_, folder, *nodes);
  return broadcast_->run(*head, std::move(list_), progress);
}

}  // namespace stoker::cli

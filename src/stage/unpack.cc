#include "stage/unpack.h"

#include "stage/archive.h"
#include "stage/publish.h"
#include "stage/write.h"

namespace stoker::stage {

// Uses the protocol in write.cc.
Result<TransferStats> unpack(const Path& archive, const Path& folder, const UnpackOptions& options,
                             Progress& progress) {
  const std::string subject = printable(archive.filename().string());
  STOKER_ASSIGN_OR_RETURN(pending, PendingFolder::create(folder));
  STOKER_ASSIGN_OR_RETURN(opened, open_archive(archive, pending.path(), progress));
  STOKER_ASSIGN_OR_RETURN(listed, opened->list());
  STOKER_ASSIGN_OR_RETURN(entries, resolve(subject, std::move(listed), options.links));
  STOKER_RETURN_IF_ERROR(check_free_space(subject, space_needed(entries), folder));
  STOKER_ASSIGN_OR_RETURN(stats, write_entries(*opened, entries, pending.path(), options.threads, progress));
  STOKER_RETURN_IF_ERROR(std::move(pending).publish());
  return stats;
}

}  // namespace stoker::stage

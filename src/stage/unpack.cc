#include "stage/unpack.h"

#include "stage/archive.h"
#include "stage/publish.h"
#include "stage/write.h"

namespace stoker::stage {

// By the protocol of write.cc.
Result<Moved> unpack(const Path& archive, const Path& folder, const UnpackOptions& options,
                     Progress& progress) {
  const std::string subject = printable(archive.filename().string());
  OK_OR_RETURN(pending, Pending::create(folder));
  OK_OR_RETURN(opened, open_archive(archive, pending.path(), progress));
  OK_OR_RETURN(listed, opened->list());
  OK_OR_RETURN(entries, resolve(subject, std::move(listed), options.links));
  RETURN_IF_ERROR(check_room(subject, need_of(entries), folder));
  OK_OR_RETURN(moved, write_entries(*opened, entries, pending.path(), options.threads, progress));
  RETURN_IF_ERROR(std::move(pending).publish());
  return moved;
}

}  // namespace stoker::stage

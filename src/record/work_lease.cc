#include "record/work_lease.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/filesystem_time.h"
#include "record/state.h"
#include "stoker/text.h"

namespace stoker::record {
namespace {

constexpr double kSilence_s = 120;

// `now`: by the clock of the file's filesystem.
bool is_alive(const Path& file, const ProcessIdentity& owner, double now) {
  const ProcessIdentity self = this_process();
  // Containers and a lab's nodes share a kernel and differ in their host names.
  if (owner.boot == self.boot && owner.host == self.host) return is_alive_on_this_host(owner);
  return is_recent(file, now, kSilence_s);
}

// Another process may have taken the lease over since it was read: then that one gets it back.
void remove_stale(const Path& file, const ProcessIdentity& owner) {
  const Path stale = file.string() + "." + random_name();
  if (!rename_path(file, stale).ok()) return;
  const auto text = read_file(stale);
  if (text.ok() && parse_identity(*text) != owner) (void)::link(stale.c_str(), file.c_str());
  (void)remove_file(stale);
}

}  // namespace

Result<WorkLease> WorkLease::take(const Path& file, std::string_view work) {
  constexpr int kTries = 5;
  const Path own = file.string() + "." + random_name();
  STOKER_RETURN_IF_ERROR(write_file(own, identity_text(this_process())));
  Status problem;
  for (int i = 0; i < kTries; ++i) {
    if (::link(own.c_str(), file.c_str()) == 0) {
      (void)remove_file(own);
      return WorkLease(file);
    }
    problem = posix_error(printable(file.string()), errno);
    if (errno != EEXIST) break;
    const auto text = read_file(file);
    if (!text.ok()) continue;  // it was released
    const ProcessIdentity owner = parse_identity(*text);
    const auto now = modified_at(own);
    if (now.ok() && is_alive(file, owner, *now)) {
      problem = exists("process {} on {} already {}", owner.pid, printable(owner.host), work);
      break;
    }
    remove_stale(file, owner);
  }
  (void)remove_file(own);
  return problem;
}

WorkLease::~WorkLease() {
  if (!file_.empty() && refresh().ok()) (void)remove_file(file_);
}

// A filesystem that does not answer for a moment takes nothing away.
Status WorkLease::refresh() const {
  const auto text = read_file(file_);
  const bool is_gone = !text.ok() && text.error().code() == Code::not_found;
  if (is_gone || (text.ok() && parse_identity(*text) != this_process()))
    return exists("{}: a different process has taken over", file_);
  (void)::utimensat(AT_FDCWD, file_.c_str(), nullptr, 0);
  return {};
}

}  // namespace stoker::record

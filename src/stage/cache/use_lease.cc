#include "stage/cache/use_lease.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "record/filesystem_time.h"

namespace stoker::stage {
namespace {

constexpr double kInvisible_s = 24 * 3600;
constexpr std::size_t kVersionDigits = 64;
constexpr std::size_t kProcessDigits = 16;

// "<boot id> <pid namespace>"
std::string_view boot_id(const record::ProcessIdentity& process) {
  return std::string_view(process.boot).substr(0, process.boot.find(' '));
}

bool is_living(const record::ProcessIdentity& process, const Path& file, double now) {
  if (process.pid <= 0) return false;  // damaged
  const record::ProcessIdentity own = record::this_process();
  // Containers and the nodes of a lab have the boot of their host, but a separate name.
  if (process.host == own.host && process.boot == own.boot) return record::is_alive_on_this_host(process);
  if (process.host == own.host && boot_id(process) != boot_id(own)) return false;  // before a restart
  return record::is_recent(file, now, kInvisible_s);
}

}  // namespace

Result<Path> begin_lease(const CacheFolder& cache, std::string_view version,
                         const record::ProcessIdentity& process) {
  // One file for a process, however often it leases the dataset.
  const std::string text = record::identity_text(process);
  const Path file = cache.leases() / format("{}-{}", version, hex(sha256(text)).substr(0, kProcessDigits));
  STOKER_RETURN_IF_ERROR(write_file(file, text));
  return file;
}

Result<OwnLease> OwnLease::begin(const CacheFolder& cache, std::string_view version) {
  const Path file = cache.leases() / format("{}-{}", version, random_name());
  STOKER_RETURN_IF_ERROR(write_file(file, record::identity_text(record::this_process())));
  return OwnLease(file);
}

void OwnLease::refresh() const { (void)::utimensat(AT_FDCWD, file_.c_str(), nullptr, 0); }

OwnLease::~OwnLease() {
  if (!file_.empty()) (void)remove_file(file_);
}

Result<std::vector<DatasetLease>> living_leases(const CacheFolder& cache) {
  STOKER_ASSIGN_OR_RETURN(names, list_directory(cache.leases()));
  STOKER_ASSIGN_OR_RETURN(now, filesystem_time(cache));
  std::vector<DatasetLease> living;
  for (const std::string& name : names) {
    if (name.size() <= kVersionDigits || name[kVersionDigits] != '-' || name.ends_with(".tmp")) continue;
    const Path file = cache.leases() / name;
    const auto text = read_file(file);
    if (!text.ok()) continue;  // it has ended meanwhile
    const record::ProcessIdentity process = record::parse_identity(*text);
    if (is_living(process, file, now)) {
      living.push_back({name.substr(0, kVersionDigits), process});
    } else {
      (void)remove_file(file);
    }
  }
  return living;
}

}  // namespace stoker::stage

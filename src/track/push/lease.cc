#include "track/push/lease.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json/json.h"
#include "record/state.h"
#include "stoker/text.h"
#include "stoker/time.h"

namespace stoker::track {
namespace {

constexpr double kSilence_s = 120;

std::string owner_text(const record::ProcessIdentity& who) {
  return json_text(
      nlohmann::json{{"host", who.host}, {"pid", who.pid}, {"pid_start", who.pid_start}, {"boot", who.boot}});
}

record::ProcessIdentity parse_owner(const std::string& text) {
  const auto json = parse_json<nlohmann::json>(text);
  record::ProcessIdentity who;
  if (!json.is_object()) return who;
  const auto read = [&](const char* key, auto* field) {
    using T = std::remove_pointer_t<decltype(field)>;
    if (json.contains(key) && (json[key].is_string() == std::is_same_v<T, std::string>) &&
        !json[key].is_structured() && !json[key].is_null())
      *field = json[key].template get<T>();
  };
  read("host", &who.host);
  read("pid", &who.pid);
  read("pid_start", &who.pid_start);
  read("boot", &who.boot);
  return who;
}

bool is_alive(const Path& file, const record::ProcessIdentity& owner) {
  if (owner.boot == record::this_process().boot) return record::is_alive_on_this_host(owner);
  struct stat found{};
  if (::stat(file.c_str(), &found) != 0) return false;
  const double changed = static_cast<double>(found.st_mtim.tv_sec);
  return unix_seconds(RealClock().wall()) - changed < kSilence_s;
}

}  // namespace

Result<PushLease> PushLease::take(const Path& file) {
  constexpr int kTries = 5;
  const Path own = file.string() + "." + random_name();
  STOKER_RETURN_IF_ERROR(write_file(own, owner_text(record::this_process())));
  Status problem;
  for (int i = 0; i < kTries; ++i) {
    if (::link(own.c_str(), file.c_str()) == 0) {
      (void)remove_file(own);
      return PushLease(file);
    }
    problem = posix_error(printable(file.string()), errno);
    if (errno != EEXIST) break;
    const auto text = read_file(file);
    if (!text.ok()) continue;  // it was released
    const record::ProcessIdentity owner = parse_owner(*text);
    if (is_alive(file, owner)) {
      problem = exists("process {} on {} already sends this run", owner.pid, printable(owner.host));
      break;
    }
    const Path stale = file.string() + "." + random_name();
    if (rename_path(file, stale).ok()) (void)remove_file(stale);
  }
  (void)remove_file(own);
  return problem;
}

PushLease::~PushLease() {
  if (!file_.empty()) (void)remove_file(file_);
}

void PushLease::refresh() const { (void)::utimensat(AT_FDCWD, file_.c_str(), nullptr, 0); }

}  // namespace stoker::track

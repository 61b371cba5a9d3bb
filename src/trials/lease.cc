#include "trials/lease.h"

#include "base/json/json.h"
#include "record/state.h"

namespace stoker::trials {

namespace {

constexpr auto kRenewInterval = std::chrono::seconds(10);
// NFS caches attributes and contents for up to 60 s.
constexpr double kValidSeconds = 90;

struct LeaseHolder {
  record::ProcessIdentity process;
  double time = 0;
};

Result<LeaseHolder> read_holder(const Path& file) {
  STOKER_ASSIGN_OR_RETURN(text, read_file(file));
  const auto json = parse_json<nlohmann::ordered_json>(text);
  const bool is_complete = json.is_object() && json.contains("host") && json["host"].is_string() &&
                           json.contains("pid") && json["pid"].is_number_integer() &&
                           json.contains("pid_start") && json["pid_start"].is_number_integer() &&
                           json.contains("boot") && json["boot"].is_string() && json.contains("time") &&
                           json["time"].is_number();
  if (!is_complete) return corrupt("{}: is no lease", file);
  return LeaseHolder{{json["host"], json["pid"], json["pid_start"], json["boot"]}, json["time"]};
}

bool is_same(const record::ProcessIdentity& a, const record::ProcessIdentity& b) {
  return a.host == b.host && a.pid == b.pid && a.pid_start == b.pid_start && a.boot == b.boot;
}

bool is_valid(const LeaseHolder& holder, const record::ProcessIdentity& self) {
  if (holder.process.host == self.host && holder.process.boot == self.boot)
    return record::is_alive_on_this_host(holder.process);
  return unix_seconds(RealClock().wall()) - holder.time < kValidSeconds;
}

Status held_by(const Path& study, const record::ProcessIdentity& process) {
  return exists("{}: is driven by process {} on {}", study, process.pid, printable(process.host))
      .cure("stoker sweep show {}", shell_quote(study.string()));
}

}  // namespace

Result<DriverLease> DriverLease::acquire(const Path& study) {
  DriverLease lease(study / "driver.json");
  lease.self_ = record::this_process();
  const auto holder = read_holder(lease.file_);
  // A damaged lease is of a process that was killed while it wrote it.
  if (holder && !is_same(holder->process, lease.self_) && is_valid(*holder, lease.self_))
    return held_by(study, holder->process);
  STOKER_RETURN_IF_ERROR(lease.write());
  return lease;
}

Status DriverLease::renew() {
  if (!next_.passed()) return {};
  const auto holder = read_holder(file_);
  if (holder && !is_same(holder->process, self_) && is_valid(*holder, self_))
    return held_by(file_.parent_path(), holder->process);
  return write();
}

Status DriverLease::write() {
  const nlohmann::ordered_json json{{"host", self_.host},
                                    {"pid", self_.pid},
                                    {"pid_start", self_.pid_start},
                                    {"boot", self_.boot},
                                    {"time", unix_seconds(RealClock().wall())}};
  STOKER_RETURN_IF_ERROR(write_file(file_, json_text(json) + "\n", Durability::none));
  next_ = Deadline::after(kRenewInterval);
  return {};
}

void DriverLease::release() { (void)remove_file(file_); }

}  // namespace stoker::trials

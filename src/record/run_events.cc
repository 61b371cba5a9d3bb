#include "record/run_events.h"

#include <algorithm>
#include <limits>

#include "base/secrets.h"

namespace stoker::record {

namespace {

/// Collects fields; omits unset optionals and empty texts.
class Fields {
 public:
  Fields& add(std::string_view name, FieldValue value) {
    fields_.push_back({std::string(name), std::move(value)});
    return *this;
  }
  Fields& add_text(std::string_view name, const std::string& value) {
    return value.empty() ? *this : add(name, FieldValue(value));
  }
  template <typename T>
  Fields& add_optional(std::string_view name, const std::optional<T>& value) {
    return value ? add(name, FieldValue(static_cast<std::int64_t>(*value))) : *this;
  }
  Status write(EventWriter& out, std::string_view kind) const { return out.write(kind, fields_); }

 private:
  std::vector<Field> fields_;
};

FieldValue whole(std::int64_t value) { return FieldValue(value); }

std::string text(const Event& event, std::string_view name) {
  return std::string(event.text(name).value_or(std::string_view()));
}

std::optional<int> small(const Event& event, std::string_view name) {
  const auto value = event.integer(name);
  if (!value || *value < std::numeric_limits<int>::min() || *value > std::numeric_limits<int>::max()) {
    return std::nullopt;
  }
  return static_cast<int>(*value);
}

std::optional<Outcome> outcome_of(std::string_view name) {
  for (Outcome outcome : {Outcome::done, Outcome::failed, Outcome::stopped}) {
    if (to_text(outcome) == name) return outcome;
  }
  return std::nullopt;
}

}  // namespace

std::string_view to_text(Outcome outcome) {
  switch (outcome) {
    case Outcome::done:
      return "done";
    case Outcome::failed:
      return "failed";
    case Outcome::stopped:
      return "stopped";
  }
  return "failed";
}

Status write_event(EventWriter& out, const Submitting& event) {
  Fields fields;
  fields.add("host", event.host).add("comment", event.comment);
  if (event.tasks > 1) fields.add("tasks", whole(event.tasks));
  return fields.write(out, kSubmitting);
}

Status write_event(EventWriter& out, const Submitted& event) {
  Fields fields;
  fields.add("scheduler_job", event.scheduler_job);
  if (event.links > 0) fields.add("links", whole(event.links));
  if (!event.after.empty()) fields.add("after", event.after);
  return fields.write(out, kSubmitted);
}

Status write_event(EventWriter& out, const SubmitFailed& event) {
  Fields fields;
  fields.add("reason", event.reason);
  if (event.is_withdrawn) fields.add("withdrawn", whole(1));
  return fields.write(out, kSubmitFailed);
}

Status write_event(EventWriter& out, const CancelRequested& event) {
  return Fields().add("user", event.user).add("host", event.host).write(out, kCancelRequested);
}

Status write_event(EventWriter& out, const NoNextAttempt& event) {
  return Fields().add("reason", event.reason).write(out, kNoNextAttempt);
}

Status write_event(EventWriter& out, const RequeueRequested& event) {
  return Fields().add("job", event.job).write(out, kRequeueRequested);
}

Status write_event(EventWriter& out, const AttemptStarted& event) {
  const ProcessIdentity& who = event.supervisor;
  Fields fields;
  fields.add("node", whole(event.node))
      .add("host", who.host)
      .add("pid", whole(who.pid))
      .add("pid_start", whole(who.pid_start))
      .add("boot", who.boot)
      .add("world_size", whole(event.world_size))
      .add("command", hide_in_command(event.command))
      .add_text("resume", event.resume)
      .add_optional("resume_step", event.resume_step)
      .add_text("scheduler_job", event.scheduler_job);
  if (event.resume_written > 0) fields.add("resume_written", event.resume_written);
  if (event.links > 0) fields.add("links", whole(event.links));
  if (event.may_restart) fields.add("may_restart", true);
  return fields.write(out, kAttemptStarted);
}

Status write_event(EventWriter& out, const RankStarted& event) {
  return Fields()
      .add("rank", whole(event.rank))
      .add("host", event.host)
      .add("pid", whole(event.pid))
      .write(out, kRankStarted);
}

Status write_event(EventWriter& out, const RankEnded& event) {
  return Fields()
      .add("rank", whole(event.rank))
      .add("host", event.host)
      .add_optional("exit_code", event.exit_code)
      .add_optional("signal", event.signal)
      .add("stopped_by_us", event.stopped_by_us)
      .add_text("phase", event.phase)
      .add_optional("epoch", event.epoch)
      .add_optional("step", event.step)
      .add_text("reason", event.reason)
      .add_text("lost_output", event.lost_output)
      .add_text("stack", event.stack)
      .write(out, kRankEnded);
}

Status write_event(EventWriter& out, const Stopping& event) {
  return Fields().add("reason", event.reason).write(out, kStopping);
}

Status write_event(EventWriter& out, const AttemptEnded& event) {
  Fields fields;
  fields.add("node", whole(event.node))
      .add("outcome", std::string(to_text(event.outcome)))
      .add("exit_code", whole(event.exit_code))
      .add_optional("first_rank", event.first_rank)
      .add_text("reason", event.reason);
  if (event.is_loss) fields.add("loss", whole(1));
  fields.add_text("lost_output", event.lost_output);
  return fields.write(out, kAttemptEnded);
}

Status write_event(EventWriter& out, const Staged& event) {
  return Fields()
      .add("node", whole(event.node))
      .add("host", event.host)
      .add("direction", std::string(event.is_stage_out ? "back" : "in"))
      .add("folder", event.folder)
      .add("files", whole(event.files))
      .add("bytes", whole(event.bytes))
      .add("seconds", event.seconds)
      .add("received", whole(event.received_bytes))
      .add("cached", whole(event.cached_bytes))
      .write(out, kStaged);
}

Status write_event(EventWriter& out, const NodeSampled& event) {
  return Fields()
      .add("node", whole(event.node))
      .add("host", event.host)
      .add("cpus", whole(event.cpus))
      .add("sources", event.sources)
      .write(out, kNodeSampled);
}

Status write_event(EventWriter& out, const GpuFound& event) {
  Fields fields;
  fields.add("node", whole(event.node))
      .add("host", event.host)
      .add("gpu", whole(event.gpu))
      .add("name", event.name)
      .add_text("uuid", event.uuid)
      .add_text("pci_bus_id", event.pci_bus_id);
  if (event.mig_devices > 0) fields.add("mig_devices", whole(event.mig_devices));
  return fields.write(out, kGpuFound);
}

Status write_event(EventWriter& out, const GpuFault& event) {
  return Fields()
      .add("node", whole(event.node))
      .add("host", event.host)
      .add("gpu", whole(event.gpu))
      .add_text("pci_bus_id", event.pci_bus_id)
      .add("xid", whole(event.code))
      .write(out, kGpuFault);
}

Status write_event(EventWriter& out, const CheckpointSaved& event) {
  return Fields()
      .add("step", whole(event.step))
      .add("epoch", whole(event.epoch))
      .add("folder", event.folder)
      .add("bytes", whole(event.bytes))
      .add("seconds", event.seconds)
      .add("stall_s", event.stall_s)
      .write(out, kCheckpointSaved);
}

Status write_event(EventWriter& out, const Resumed& event) {
  return Fields()
      .add("step", whole(event.step))
      .add("epoch", whole(event.epoch))
      .add("folder", event.folder)
      .write(out, kResumed);
}

std::optional<Submitting> submitting(const Event& event) {
  if (event.kind != kSubmitting) return std::nullopt;
  return Submitting{text(event, "host"), text(event, "comment"),
                    std::max(1, small(event, "tasks").value_or(1))};
}

std::optional<Submitted> submitted(const Event& event) {
  if (event.kind != kSubmitted || text(event, "scheduler_job").empty()) return std::nullopt;
  const auto after = event.list("after");
  return Submitted{text(event, "scheduler_job"), std::max(0, small(event, "links").value_or(0)),
                   std::vector<std::string>(after.begin(), after.end())};
}

std::optional<SubmitFailed> submit_failed(const Event& event) {
  if (event.kind != kSubmitFailed) return std::nullopt;
  return SubmitFailed{text(event, "reason"), event.integer("withdrawn").value_or(0) != 0};
}

std::optional<CancelRequested> cancel_requested(const Event& event) {
  if (event.kind != kCancelRequested) return std::nullopt;
  return CancelRequested{text(event, "user"), text(event, "host")};
}

std::optional<NoNextAttempt> no_next_attempt(const Event& event) {
  if (event.kind != kNoNextAttempt) return std::nullopt;
  return NoNextAttempt{text(event, "reason")};
}

std::optional<RequeueRequested> requeue_requested(const Event& event) {
  if (event.kind != kRequeueRequested) return std::nullopt;
  return RequeueRequested{text(event, "job")};
}

std::optional<AttemptStarted> attempt_started(const Event& event) {
  if (event.kind != kAttemptStarted) return std::nullopt;
  AttemptStarted started;
  started.node = small(event, "node").value_or(0);
  started.supervisor = {text(event, "host"), event.integer("pid").value_or(0),
                        event.integer("pid_start").value_or(0), text(event, "boot")};
  started.world_size = small(event, "world_size").value_or(1);
  const auto command = event.list("command");
  started.command.assign(command.begin(), command.end());
  started.resume = text(event, "resume");
  started.resume_step = event.integer("resume_step");
  started.resume_written = event.number("resume_written").value_or(0);
  started.scheduler_job = text(event, "scheduler_job");
  started.links = std::max(0, small(event, "links").value_or(0));
  started.may_restart = event.flag("may_restart").value_or(false);
  return started;
}

std::optional<RankStarted> rank_started(const Event& event) {
  const auto rank = small(event, "rank");
  if (event.kind != kRankStarted || !rank) return std::nullopt;
  return RankStarted{*rank, text(event, "host"), event.integer("pid").value_or(0)};
}

std::optional<RankEnded> rank_ended(const Event& event) {
  const auto rank = small(event, "rank");
  if (event.kind != kRankEnded || !rank) return std::nullopt;
  RankEnded ended;
  ended.rank = *rank;
  ended.host = text(event, "host");
  ended.exit_code = small(event, "exit_code");
  ended.signal = small(event, "signal");
  ended.stopped_by_us = event.flag("stopped_by_us").value_or(false);
  ended.phase = text(event, "phase");
  ended.epoch = event.integer("epoch");
  ended.step = event.integer("step");
  ended.reason = text(event, "reason");
  ended.lost_output = text(event, "lost_output");
  ended.stack = text(event, "stack");
  return ended;
}

std::optional<Stopping> stopping(const Event& event) {
  if (event.kind != kStopping) return std::nullopt;
  return Stopping{text(event, "reason")};
}

std::optional<AttemptEnded> attempt_ended(const Event& event) {
  const auto outcome = outcome_of(event.text("outcome").value_or(""));
  if (event.kind != kAttemptEnded || !outcome) return std::nullopt;
  return AttemptEnded{small(event, "node").value_or(0),
                      *outcome,
                      small(event, "exit_code").value_or(0),
                      small(event, "first_rank"),
                      text(event, "reason"),
                      text(event, "job_state"),
                      event.integer("loss").value_or(0) != 0,
                      text(event, "lost_output")};
}

std::optional<Staged> staged(const Event& event) {
  const auto node = small(event, "node");
  if (event.kind != kStaged || !node) return std::nullopt;
  return Staged{*node,
                text(event, "host"),
                text(event, "direction") == "back",
                text(event, "folder"),
                event.integer("files").value_or(0),
                event.integer("bytes").value_or(0),
                event.number("seconds").value_or(0),
                event.integer("received").value_or(0),
                event.integer("cached").value_or(0)};
}

std::optional<NodeSampled> node_sampled(const Event& event) {
  const auto node = small(event, "node");
  if (event.kind != kNodeSampled || !node) return std::nullopt;
  const auto sources = event.list("sources");
  return NodeSampled{*node, text(event, "host"), small(event, "cpus").value_or(0),
                     std::vector<std::string>(sources.begin(), sources.end())};
}

std::optional<GpuFound> gpu_found(const Event& event) {
  const auto gpu = small(event, "gpu");
  if (event.kind != kGpuFound || !gpu) return std::nullopt;
  return GpuFound{small(event, "node").value_or(0),
                  text(event, "host"),
                  *gpu,
                  text(event, "name"),
                  text(event, "uuid"),
                  text(event, "pci_bus_id"),
                  small(event, "mig_devices").value_or(0)};
}

std::optional<GpuFault> gpu_fault(const Event& event) {
  const auto gpu = small(event, "gpu");
  const auto code = small(event, "xid");
  if (event.kind != kGpuFault || !gpu || !code) return std::nullopt;
  return GpuFault{small(event, "node").value_or(0), text(event, "host"), *gpu, text(event, "pci_bus_id"),
                  *code};
}

std::optional<CheckpointSaved> checkpoint_saved(const Event& event) {
  const auto step = event.integer("step");
  if (event.kind != kCheckpointSaved || !step) return std::nullopt;
  return CheckpointSaved{*step,
                         event.integer("epoch").value_or(0),
                         text(event, "folder"),
                         event.integer("bytes").value_or(0),
                         event.number("seconds").value_or(0),
                         event.number("stall_s").value_or(0)};
}

std::optional<Resumed> resumed(const Event& event) {
  const auto step = event.integer("step");
  if (event.kind != kResumed || !step) return std::nullopt;
  return Resumed{*step, event.integer("epoch").value_or(0), text(event, "folder")};
}

}  // namespace stoker::record

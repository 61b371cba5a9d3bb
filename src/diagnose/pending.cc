#include "diagnose/pending.h"

namespace stoker::diagnose {
namespace {

// The first match applies. Reasons: job_state_reason.c of Slurm.
constexpr PendingRule kRules[] = {
    {"Priority", "use a shorter --time and fewer nodes: smaller jobs fit into gaps", false},
    {"Resources", "use fewer nodes, less memory or fewer GPUs per node; the job is next in line", false},
    {"DependencyNeverSatisfied", "scancel it and submit both again: its dependency failed", true},
    {"Dependency", "wait for its dependency: squeue -j with the id in Dependency= of `scontrol show job`",
     false},
    {"JobHeldUser", "scontrol release JOB", true},
    {"JobHeldAdmin", "ask the administrators: they hold the job, or it was requeued too often", true},
    {"JobHoldMaxRequeue", "read its log: it was requeued too often; then scontrol release JOB", true},
    {"BeginTime", "scontrol update JobId=JOB StartTime=now; after a requeue Slurm waits two minutes", false},
    {"JobArrayTaskLimit", "scontrol update JobId=JOB ArrayTaskThrottle=N with a larger N", false},
    {"PartitionTimeLimit",
     "scontrol update JobId=JOB TimeLimit=1:00:00, below the limit of the partition: sinfo -o '%P %l'", true},
    {"PartitionNodeLimit", "use fewer nodes (scontrol update JobId=JOB NumNodes=N) or a different partition",
     true},
    {"PartitionDown", "choose a different partition from `sinfo -s`, or wait until it is up", false},
    {"PartitionInactive", "choose a different partition from `sinfo -s`, or wait until it is up", false},
    {"PartitionConfig", "choose a different partition: this one does not allow such a job", true},
    {"BadConstraints", "change --constraint, or request less per node: no node matches", true},
    {"ReqNodeNotAvail", "omit --nodelist; use a shorter --time to end before a maintenance reservation",
     false},
    {"NodeDown", "exclude the node that is down: sinfo -R", false},
    {"ReservationDeleted", "submit it without --reservation", true},
    {"Reservation", "wait for its reservation to begin: scontrol show reservation", false},
    {"InvalidAccount", "choose --account from `sacctmgr show assoc user=$USER`", true},
    {"InvalidQOS", "choose --qos from `sacctmgr show assoc format=qos`", true},
    {"AccountNotAllowed", "choose a different partition, or an --account that may use this one", true},
    {"QOSNotAllowed", "choose a different --qos, or a partition that accepts this one", true},
    {"Licenses", "wait: all its licenses are in use (scontrol show licenses)", false},
    {"QOSMaxWallDurationPerJobLimit", "use a shorter --time or a different --qos", true},
    {"AssocMaxWallDurationPerJobLimit", "use a shorter --time", true},
    {"QOSMax*PerJobLimit", "request less, or use a different --qos: the job exceeds the limit per job", true},
    {"QOSMax*PerUserLimit", "wait for one of your jobs to end; --array=...%N leaves capacity for other jobs",
     false},
    {"QOSMax*PerAccountLimit", "wait for a job of your group to end", false},
    {"QOSMax*", "wait for one of your jobs to end, or use a different --qos", false},
    {"QOSMin*", "request more, or use a different --qos: the job is below the minimum per job", true},
    {"QOSGrp*Minutes", "use a different account: the hours of that --qos are used up (sshare)", false},
    {"QOSGrp*", "wait for other jobs with this --qos to end, or use a different --qos", false},
    {"AssocGrp*Minutes", "use a different account: its hours are used up (sshare -A ACCOUNT)", false},
    {"AssocGrp*", "wait for a job of your account to end", false},
    {"AssocMax*PerJobLimit", "request less: the job exceeds the account's limit per job", true},
    {"AssocMax*", "wait for one of your jobs to end", false},
    {"MaxMemPerLimit", "use less --mem: it exceeds the limit per job", true},
    {"NonZeroExitCode", "read its log: it ended with an error and is held; then scontrol release JOB", true},
    {"launch*",
     "scontrol update JobId=JOB ExcNodeList=NODE without the node that could not start it, then scontrol "
     "release JOB",
     true},
    {"Prolog", "wait: Slurm prepares its nodes", false},
    {"Cleaning", "wait: Slurm cleans up after the previous job", false},
};

bool fits(std::string_view pattern, std::string_view reason) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return reason == pattern;
  const std::string_view begin = pattern.substr(0, star);
  const std::string_view end = pattern.substr(star + 1);
  return reason.size() >= begin.size() + end.size() && reason.starts_with(begin) && reason.ends_with(end);
}

}  // namespace

std::span<const PendingRule> pending_rules() { return kRules; }

const PendingRule* find_pending_rule(std::string_view reason) {
  // "ReqNodeNotAvail, UnavailableNodes:n3", "launch failed requeued held".
  const std::string_view word = reason.substr(0, reason.find_first_of(", "));
  for (const PendingRule& rule : kRules) {
    if (fits(rule.reason, word)) return &rule;
  }
  return nullptr;
}

}  // namespace stoker::diagnose

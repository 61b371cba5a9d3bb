#include "explain/failure/waiting.h"

namespace stoker::explain {
namespace {

// The first that fits counts. Words: source of slurm, job_state_reason.c.
constexpr WaitingRule kRules[] = {
    {"Priority", "a shorter --time and fewer nodes fit into gaps before larger jobs", false},
    {"Resources", "fewer nodes, or less memory or fewer GPUs for each, fit sooner; it is next in line",
     false},
    {"DependencyNeverSatisfied", "scancel it: what it waits for has failed; submit both again", true},
    {"Dependency",
     "what it waits for has to end first: squeue -j of the id under Dependency= of `scontrol show job`",
     false},
    {"JobHeldUser", "scontrol release JOB", true},
    {"JobHeldAdmin", "ask the administrators: they hold it, or it was started again too often", true},
    {"JobHoldMaxRequeue", "read its log: it was started again too often; then scontrol release JOB", true},
    {"BeginTime",
     "scontrol update JobId=JOB StartTime=now; after a requeue Slurm waits two minutes by itself", false},
    {"JobArrayTaskLimit", "scontrol update JobId=JOB ArrayTaskThrottle=N with a larger N", false},
    {"PartitionTimeLimit", "scontrol update JobId=JOB TimeLimit=... below the partition's: sinfo -o '%P %l'",
     true},
    {"PartitionNodeLimit", "fewer nodes: scontrol update JobId=JOB NumNodes=N, or another partition", true},
    {"PartitionDown", "another partition of `sinfo -s`, or wait until it is up", false},
    {"PartitionInactive", "another partition of `sinfo -s`, or wait until it is up", false},
    {"PartitionConfig", "another partition: this one does not allow such a job", true},
    {"BadConstraints", "another --constraint, or less of one thing on each node: no node is like that", true},
    {"ReqNodeNotAvail",
     "without --nodelist; a reservation for maintenance lets in what ends before it: a shorter --time",
     false},
    {"NodeDown", "without the node that is down: sinfo -R", false},
    {"ReservationDeleted", "submit it without --reservation", true},
    {"Reservation", "its reservation has not begun: scontrol show reservation", false},
    {"InvalidAccount", "--account=... of `sacctmgr show assoc user=$USER`", true},
    {"InvalidQOS", "--qos=... of `sacctmgr show assoc format=qos`", true},
    {"AccountNotAllowed", "another partition, or --account that may use this one", true},
    {"QOSNotAllowed", "another --qos, or a partition that takes this one", true},
    {"Licenses", "its licences are all in use: scontrol show licenses", false},
    {"QOSMaxWallDurationPerJobLimit", "a shorter --time, or another --qos", true},
    {"AssocMaxWallDurationPerJobLimit", "a shorter --time", true},
    {"QOSMax*PerJobLimit", "less for this one job, or another --qos: it is over what one job may have", true},
    {"QOSMax*PerUserLimit", "one of your own jobs has to end first; --array=...%N leaves room for others",
     false},
    {"QOSMax*PerAccountLimit", "a job of your group has to end first", false},
    {"QOSMax*", "one of your own jobs has to end first, or another --qos", false},
    {"QOSMin*", "more for this job, or another --qos: it is below what one job must have", true},
    {"QOSGrp*Minutes", "the hours of that --qos are used up: sshare, or another account", false},
    {"QOSGrp*", "others of the same --qos have to end first, or another --qos", false},
    {"AssocGrp*Minutes", "the hours of the account are used up: sshare -A ACCOUNT", false},
    {"AssocGrp*", "a job of your account has to end first", false},
    {"AssocMax*PerJobLimit", "less for this one job: it is over what one job of the account may have", true},
    {"AssocMax*", "one of your own jobs has to end first", false},
    {"MaxMemPerLimit", "less --mem: it is over what one job may have", true},
    {"NonZeroExitCode", "read its log: it ended with an error and is held; then scontrol release JOB", true},
    {"launch*", "a node could not start it: scontrol release JOB, with --exclude of that node", true},
    {"Prolog", "nothing: its nodes are being made ready", false},
    {"Cleaning", "nothing: what ran before is being tidied up", false},
};

bool fits(std::string_view pattern, std::string_view reason) {
  const std::size_t star = pattern.find('*');
  if (star == std::string_view::npos) return reason == pattern;
  const std::string_view begin = pattern.substr(0, star);
  const std::string_view end = pattern.substr(star + 1);
  return reason.size() >= begin.size() + end.size() && reason.starts_with(begin) && reason.ends_with(end);
}

}  // namespace

std::span<const WaitingRule> waiting_rules() { return kRules; }

const WaitingRule* waiting_rule(std::string_view reason) {
  // "ReqNodeNotAvail, UnavailableNodes:n3", "launch failed requeued held".
  const std::string_view word = reason.substr(0, reason.find_first_of(", "));
  for (const WaitingRule& rule : kRules) {
    if (fits(rule.reason, word)) return &rule;
  }
  return nullptr;
}

}  // namespace stoker::explain

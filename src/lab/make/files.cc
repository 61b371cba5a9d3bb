#include "lab/make/files.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include "base/file.h"
#include "net/port.h"

namespace stoker::lab {
namespace {

// Binding needs real cores; a pinned node has only one.
bool can_bind(const Lab& lab, const HostInfo& host_info) {
  return lab.nodes[0].core < 0 && lab.cpus <= host_info.cores;
}

std::string node_lines(const Lab& lab, const HostInfo& host_info) {
  std::string lines;
  for (const LabNode& node : lab.nodes) {
    const std::string host = lab.mode == LabMode::namespaces ? node.name : host_info.host;
    lines += format("NodeName={} NodeHostname={} NodeAddr={} Port={} CPUs={} RealMemory={}{} State=UNKNOWN\n",
                    node.name, host, node.address, node.port, lab.cpus, lab.memory_mb,
                    lab.gpus > 0 ? format(" Gres=gpu:{}", lab.gpus) : "");
  }
  return lines;
}

std::string partition_lines(const Lab& lab) {
  std::string lines =
      "PartitionName=cpu Nodes=ALL Default=YES DefaultTime=01:00:00 MaxTime=1-00:00:00 PriorityTier=10 "
      "PreemptMode=OFF\n";
  if (lab.gpus > 0) {
    lines +=
        "PartitionName=gpu Nodes=ALL DefaultTime=01:00:00 MaxTime=1-00:00:00 PriorityTier=10 "
        "PreemptMode=OFF\n";
  }
  lines +=
      "PartitionName=debug Nodes=ALL DefaultTime=00:01:00 MaxTime=00:02:00 PriorityTier=10 PreemptMode=OFF\n";
  lines +=
      "PartitionName=low Nodes=ALL DefaultTime=01:00:00 MaxTime=1-00:00:00 PriorityTier=1 "
      "PreemptMode=REQUEUE "
      "GraceTime=10\n";
  return lines;
}

std::string accounting_lines(const Lab& lab) {
  if (!lab.has_accounting) return "";
  return format(
      "AccountingStorageType=accounting_storage/slurmdbd\n"
      "AccountingStorageHost={}\n"
      "AccountingStoragePort={}\n"
      "AccountingStoragePass={}\n"
      "AccountingStoreFlags=job_comment,job_env,job_script\n"
      "AccountingStorageTRES=gres/gpu\n",
      lab.host_address, lab.database_port, munge_socket(lab));
}

}  // namespace

Path munge_socket(const Lab& lab) { return lab.folder / "munge/socket"; }

Result<HostInfo> read_host_info() {
  HostInfo host_info;
  const passwd* entry = ::getpwuid(::geteuid());
  if (entry == nullptr) {
    return invalid("lab: user {} has no name on this machine, which Slurm needs (/etc/passwd)", ::geteuid());
  }
  host_info.user = entry->pw_name;
  host_info.host = net::host_name();
  host_info.cores = static_cast<int>(std::thread::hardware_concurrency());
  for (const char* lmod : {"/usr/share/lmod/lmod/init/bash", "/usr/share/lmod/lmod/init/profile"}) {
    if (host_info.lmod.empty() && path_exists(lmod)) host_info.lmod = lmod;
  }
  std::error_code error;
  host_info.stoker_bin = std::filesystem::read_symlink("/proc/self/exe", error).parent_path().string();
  return host_info;
}

std::string slurm_conf(const Lab& lab, const HostInfo& host_info) {
  const Path& folder = lab.folder;
  std::string text = format(
      "ClusterName={}\nSlurmctldHost={}({})\nSlurmctldPort={}\nSlurmUser={}\nSlurmdUser={}\n"
      "AuthType=auth/munge\nCredType=cred/munge\n",
      lab.name, host_info.host, lab.host_address, lab.controller_port, host_info.user, host_info.user);
  // A requeued job restarts only after its old credential has expired: 5 s instead of 120.
  text += format("AuthInfo=socket={},cred_expire=5\nCommunicationParameters=NoCtldInAddrAny\n",
                 munge_socket(lab));
  text += format("StateSaveLocation={0}/state\nSlurmdSpoolDir={0}/nodes/%n/spool\n", folder);
  text += format("SlurmctldLogFile={0}/log/slurmctld.log\nSlurmdLogFile={0}/log/slurmd-%n.log\n", folder);
  text += format("SlurmctldPidFile={0}/run/slurmctld.pid\nSlurmdPidFile={0}/run/slurmd-%n.pid\n", folder);
  text += format("Prolog={0}/etc/prolog\nEpilog={0}/etc/epilog\nTaskProlog={0}/etc/task-prolog\n", folder);
  text += format("TaskPlugin=task/{}\n", can_bind(lab, host_info) ? "affinity" : "none");
  text +=
      "ProctrackType=proctrack/"
      "linuxproc\nSlurmdParameters=config_overrides\nMpiDefault=none\nSwitchType=switch/none\n"
      "ReturnToService=2\nMailProg=/bin/true\nSelectType=select/"
      "cons_tres\nSelectTypeParameters=CR_CPU_Memory\n"
      "JobAcctGatherType=jobacct_gather/"
      "linux\nJobAcctGatherFrequency=task=1\nJobAcctGatherParams=OverMemoryKill\n"
      "KillWait=5\nJobRequeue=1\nPreemptType=preempt/partition_prio\nPreemptMode=REQUEUE\n"
      "SchedulerParameters=bf_interval=2,sched_interval=5,sched_min_interval=0,batch_sched_delay=0,"
      "nohold_on_prolog_fail\n"
      "SlurmdTimeout=20\n"
      // A busy host answers late. A repeated launch request would fail and hold the job.
      "MessageTimeout=20\nBatchStartTimeout=60\n";
  text += format("DefMemPerCPU={}\nMaxArraySize={}\n", lab.memory_mb / lab.cpus, lab.max_array_size);
  if (lab.gpus > 0) text += "GresTypes=gpu\n";
  return text + accounting_lines(lab) + node_lines(lab, host_info) + partition_lines(lab);
}

std::string gres_conf(const Lab& lab) {
  if (lab.gpus == 0) return "";
  // CUDA_VISIBLE_DEVICES is set only for a device file; a link to /dev/null is one.
  return format("AutoDetect=off\nName=gpu File={}/etc/gpu[0-{}]\n", lab.folder, lab.gpus - 1);
}

std::string slurmdbd_conf(const Lab& lab, const HostInfo& host_info) {
  return format(
      "AuthType=auth/"
      "munge\nAuthInfo=socket={}\nDbdHost=localhost\nDbdAddr={}\nDbdPort={}\nSlurmUser={}\n"
      "StorageType=accounting_storage/mysql\nStorageHost=localhost\nStorageUser={}\nStorageLoc=slurm\n"
      "LogFile={}/log/slurmdbd.log\nPidFile={}/run/slurmdbd.pid\n",
      munge_socket(lab), lab.host_address, lab.database_port, host_info.user, host_info.user, lab.folder,
      lab.folder);
}

std::string hosts_file(const Lab& lab, const HostInfo& host_info) {
  std::string text = format("127.0.0.1 localhost\n{} {}\n", lab.host_address, host_info.host);
  for (const LabNode& node : lab.nodes) text += format("{} {}\n", node.address, node.name);
  return text;
}

std::string nsswitch_conf(std::string_view of_host) {
  std::string text;
  for (const std::string_view line : split(of_host, '\n')) {
    if (!line.empty() && !trim(line).starts_with("hosts:")) text += format("{}\n", line);
  }
  return text + "hosts: files\n";
}

namespace {

// The job's folder on the node's local disk, as a shell expression for the prologs.
std::string local_of_job(const Lab& lab) {
  const std::string local = lab.mode == LabMode::namespaces
                                ? (lab.folder / "local").string()
                                : (lab.folder / "nodes/$SLURMD_NODENAME/local").string();
  return local + "/$SLURM_JOB_USER.$SLURM_JOB_ID";
}

Status write_script(const Path& path, const std::string& body) {
  STOKER_RETURN_IF_ERROR(write_file(path, "#!/bin/sh\n" + body));
  return ::chmod(path.c_str(), 0755) == 0 ? Status() : posix_error(path.string(), errno);
}

Status write_prologs(const Lab& lab) {
  const std::string local = local_of_job(lab);
  STOKER_RETURN_IF_ERROR(write_script(
      lab.folder / "etc/prolog",
      format(
          "# Once per job and node, before its first step.\nmkdir -p \"{0}\" && chmod 700 \"{0}\" || exit 1\n"
          "[ \"$(id -u)\" != 0 ] || chown \"$SLURM_JOB_UID\" \"{0}\"\n",
          local)));
  STOKER_RETURN_IF_ERROR(
      write_script(lab.folder / "etc/epilog",
                   format("# Once per job and node, after its last step.\nrm -rf \"{}\"\n", local)));
  return write_script(lab.folder / "etc/task-prolog",
                      format("# Once per task; `export` lines are added to its environment.\n"
                             "echo \"export SLURM_TMPDIR={}\"\n"
                             "echo \"export STOKER_LAB_MEMBER={}\"\n"
                             "echo \"export STOKER_LAB_NODE=$SLURMD_NODENAME\"\n",
                             local, lab.folder));
}

Status write_key(const Lab& lab) {
  STOKER_ASSIGN_OR_RETURN(random, File::open_read("/dev/urandom"));
  std::string key(1024, '\0');
  STOKER_RETURN_IF_ERROR(random.read_at(0, std::as_writable_bytes(std::span(key))));
  const Path path = lab.folder / "etc/munge.key";
  const mode_t before = ::umask(0077);
  const Status written = write_file(path, key);
  ::umask(before);
  return written;
}

struct Module {
  const char* path;
  const char* what;
  std::string body;
};

Status write_modules(const Lab& lab, const HostInfo& host_info) {
  if (host_info.lmod.empty()) return {};
  // Sourcing Lmod defines the shell function `module`, exported for batch scripts.
  STOKER_RETURN_IF_ERROR(write_file(lab.folder / "etc/modules.sh", format(". {}\n", host_info.lmod)));
  const Module modules[] = {
      {"gcc/12", "the system's C and C++ compilers", "setenv(\"CC\", \"gcc\")\nsetenv(\"CXX\", \"g++\")\n"},
      {"python/3.11", "the system's Python",
       "prepend_path(\"PATH\", \"/usr/bin\")\nsetenv(\"PYTHONNOUSERSITE\", \"1\")\n"},
      {"cuda/12.2", "no CUDA: the lab's GPUs are made up",
       format("setenv(\"CUDA_HOME\", \"{}/modules/cuda\")\n", lab.folder)},
      {"stoker/lab", "this Stoker", format("prepend_path(\"PATH\", \"{}\")\n", host_info.stoker_bin)},
  };
  for (const Module& module : modules) {
    const Path file = lab.folder / "modules" / format("{}.lua", module.path);
    STOKER_RETURN_IF_ERROR(make_directories(file.parent_path()));
    STOKER_RETURN_IF_ERROR(write_file(
        file, format("help([[{0}]])\nwhatis(\"Description: {0}\")\n{1}", module.what, module.body)));
  }
  return {};
}

Status make_open_folder(const Path& path) {
  STOKER_RETURN_IF_ERROR(make_directories(path));
  return ::chmod(path.c_str(), 01777) == 0 ? Status() : posix_error(path.string(), errno);
}

Status make_folders(const Lab& lab) {
  for (const char* name : {"etc", "log", "run", "state", "munge", "modules"}) {
    STOKER_RETURN_IF_ERROR(make_directories(lab.folder / name));
  }
  STOKER_RETURN_IF_ERROR(make_open_folder(lab.shared()));
  for (const LabNode& node : lab.nodes) {
    STOKER_RETURN_IF_ERROR(make_directories(lab.folder / "nodes" / node.name / "spool"));
    STOKER_RETURN_IF_ERROR(make_open_folder(lab.local(node)));
  }
  return {};
}

}  // namespace

Status write_files(const Lab& lab, const HostInfo& host_info) {
  const Path etc = lab.folder / "etc";
  STOKER_RETURN_IF_ERROR(make_folders(lab));
  STOKER_RETURN_IF_ERROR(write_file(etc / "slurm.conf", slurm_conf(lab, host_info)));
  STOKER_RETURN_IF_ERROR(write_file(etc / "gres.conf", gres_conf(lab)));
  STOKER_RETURN_IF_ERROR(write_file(etc / "hosts", hosts_file(lab, host_info)));
  STOKER_RETURN_IF_ERROR(
      write_file(etc / "nsswitch.conf",
                 nsswitch_conf(read_file("/etc/nsswitch.conf").ok() ? read_file("/etc/nsswitch.conf").value()
                                                                    : std::string())));
  STOKER_RETURN_IF_ERROR(write_key(lab));
  if (lab.has_accounting) {
    STOKER_RETURN_IF_ERROR(write_file(etc / "slurmdbd.conf", slurmdbd_conf(lab, host_info)));
    if (::chmod((etc / "slurmdbd.conf").c_str(), 0600) != 0) return posix_error("slurmdbd.conf", errno);
  }
  for (int gpu = 0; gpu < lab.gpus; ++gpu) {
    const Path device = etc / format("gpu{}", gpu);
    if (::symlink("/dev/null", device.c_str()) != 0) return posix_error(device.string(), errno);
  }
  STOKER_RETURN_IF_ERROR(write_prologs(lab));
  return write_modules(lab, host_info);
}

}  // namespace stoker::lab

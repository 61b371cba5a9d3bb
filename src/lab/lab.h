// A lab: a real Slurm cluster of several nodes on this machine. Its parts, its folder with lab.json, finding
// labs, running commands in one. Used by src/lab and `stoker lab`. Values; functions are thread-safe, but
// only one process at a time should change a lab.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "base/process.h"
#include "stoker/status.h"

namespace stoker::lab {

/// How nodes are isolated from each other.
enum class LabMode {
  processes,   ///< one slurmd per node, all on this host's name and loopback address; any user
  namespaces,  ///< each node has its own address, host name, /etc/hosts, /dev/shm and local disk; root
};
/// "processes" or "namespaces".
std::string_view to_text(LabMode mode);
Result<LabMode> parse_mode(std::string_view text);

/// Options of a new lab.
struct Options {
  std::string name = "lab1";
  int nodes = 4;
  int cpus = 2;  ///< per node, in Slurm
  int gpus = 2;  ///< per node; simulated
  int max_array_size = 1001;
  LabMode mode = LabMode::processes;
  bool has_accounting = false;  ///< slurmdbd and a private MariaDB, for sacct
  bool is_pinned = false;       ///< pin each node to one core, in turn
  pid_t owner = 0;              ///< the lab is removed when this process exits; 0: only by `down`
};

/// Whether a lab is complete.
enum class LabPhase { starting, up };

/// One node. Its pids are 0 while it is not running.
struct LabNode {
  std::string name;               ///< "n1": Slurm's name, and the host name in namespaces mode
  std::string address;            ///< "10.77.3.1"; "127.0.0.1" in processes mode
  std::uint16_t port = 0;         ///< where its slurmd listens
  std::string network_namespace;  ///< "lab1-n1", in /run/netns; empty in processes mode
  std::string link;               ///< this host's end of its veth pair, "lab1-n1"; empty in processes mode
  int core = -1;                  ///< the core it is pinned to, or -1
  pid_t holder = 0;               ///< the process that holds its namespaces; 0 in processes mode
  pid_t slurmd = 0;
};

/// A lab, as stored in lab.json.
struct Lab {
  std::string name;
  Path folder;
  LabPhase phase = LabPhase::starting;
  LabMode mode = LabMode::processes;
  int cpus = 0;
  int gpus = 0;
  int memory_mb = 0;  ///< per node, in Slurm
  int max_array_size = 0;
  bool has_accounting = false;
  std::string slurm_version;  ///< "22.05.8"
  double started = 0;         ///< Unix seconds

  std::string bridge;        ///< "lab1"; empty in processes mode
  std::string host_address;  ///< the host's address on the bridge, else "127.0.0.1"
  std::uint16_t controller_port = 0;
  std::uint16_t database_port = 0;  ///< slurmdbd's; 0 without accounting

  pid_t starter = 0;   ///< the process that creates the lab; 0 once it is up
  pid_t guardian = 0;  ///< the process that removes the lab when its owner exits; 0 without an owner
  pid_t owner = 0;
  pid_t login = 0;  ///< holds the private /etc/hosts of controller and shells; 0 in processes mode
  pid_t munged = 0;
  pid_t controller = 0;
  pid_t database = 0;    ///< mariadbd
  pid_t accounting = 0;  ///< slurmdbd

  std::vector<LabNode> nodes;

  Path slurm_conf() const { return folder / "etc/slurm.conf"; }
  Path log_folder() const { return folder / "log"; }
  /// Shared by all nodes and this host.
  Path shared() const { return folder / "shared"; }
  /// A node's local disk as its jobs see it: in namespaces mode the same path on every node, but separate
  /// disks.
  Path local(const LabNode& node) const;
  /// The same folder as seen by this host.
  Path local_from_host(const LabNode& node) const;
  /// nullptr if there is no such node.
  LabNode* find(std::string_view node);
  const LabNode* find(std::string_view node) const;
};

/// The folder of this user's labs: $STOKER_LAB_DIR, else /tmp/stoker-lab-<uid>.
Path labs_folder();
/// A lower-case letter, then up to ten letters and digits, because it is part of network interface names.
Status check_name(std::string_view name);

/// The lab of this name, in any phase. NotFound "lab1: no such lab (available: x, y)", Corrupt when its
/// lab.json cannot be read.
Result<Lab> open(std::string_view name);
/// Parses lab.json; missing or mistyped fields keep their defaults. Corrupt if the text is not a JSON object.
Result<Lab> parse(std::string_view text, const Path& folder);
/// All readable labs of this user, by name.
Result<std::vector<Lab>> list();
/// The lab's node of this name, or NotFound "n9: no such node in lab1 (available: n1, n2)".
Result<const LabNode*> find_node(const Lab& lab, std::string_view name);
/// Replaces lab.json.
Status save(const Lab& lab);

/// Variables that connect a shell to the lab: SLURM_CONF, and MODULEPATH with the lab's modules first.
Environment lab_variables(const Lab& lab);
/// A command on this host with the lab's SLURM_CONF.
Command client_command(const Lab& lab, std::vector<std::string> argv);
/// A command on a node, in the folder `directory`; enters the node's namespaces in namespaces mode.
Command node_command(const Lab& lab, const LabNode& node, std::vector<std::string> argv,
                     const Path& directory = "/");
/// The same where the controller runs: on this host, with resolvable node names.
Command login_command(const Lab& lab, std::vector<std::string> argv, const Path& directory = "/");

}  // namespace stoker::lab

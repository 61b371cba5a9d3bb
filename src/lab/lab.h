// A lab: a real Slurm cluster of several nodes on this one machine. What it is made of, where it lies on disk
// (lab.json in its folder), how to find labs and how to run something in one. Used by the rest of this room
// and by `stoker lab`. Values; functions are thread-safe, but one process at a time should change a lab.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

#include "base/process.h"
#include "base/status.h"

namespace stoker::lab {

/// How nodes differ from each other.
enum class Mode {
  processes,   ///< one slurmd per node, all on this host's name and loopback address; any user
  namespaces,  ///< each node has its own address, host name, /etc/hosts, /dev/shm and local disk; root
};
/// "processes" or "namespaces".
std::string_view to_text(Mode mode);
Result<Mode> parse_mode(std::string_view text);

/// What lab to make.
struct Options {
  std::string name = "lab1";
  int nodes = 4;
  int cpus = 2;  ///< of each node, as Slurm counts them
  int gpus = 2;  ///< of each node; made up
  int max_array_size = 1001;
  Mode mode = Mode::processes;
  bool has_accounting = false;  ///< slurmdbd and a private MariaDB, for sacct
  bool is_pinned = false;       ///< each node on one core of its own, in turn
  pid_t owner = 0;              ///< the lab ends with this process; 0: only by `down`
};

/// How far a lab is.
enum class Phase { starting, up };

/// One node. Its pids are 0 while nothing runs.
struct Node {
  std::string name;               ///< "n1": Slurm's name, and the host name in namespaces mode
  std::string address;            ///< "10.77.3.1"; "127.0.0.1" in processes mode
  std::uint16_t port = 0;         ///< where its slurmd listens
  std::string network_namespace;  ///< "lab1-n1", in /run/netns; empty in processes mode
  std::string link;               ///< this host's end of its cable, "lab1-n1"; empty in processes mode
  int core = -1;                  ///< the core it is pinned to, or -1
  pid_t holder = 0;               ///< the process that keeps its namespaces; 0 in processes mode
  pid_t slurmd = 0;
};

/// A lab as lab.json tells it.
struct Lab {
  std::string name;
  Path folder;
  Phase phase = Phase::starting;
  Mode mode = Mode::processes;
  int cpus = 0;
  int gpus = 0;
  int memory_mb = 0;  ///< of each node, as Slurm counts it
  int max_array_size = 0;
  bool has_accounting = false;
  std::string slurm_version;  ///< "22.05.8"
  double started = 0;         ///< Unix seconds

  std::string bridge;        ///< "lab1"; empty in processes mode
  std::string host_address;  ///< the host's address on the bridge, else "127.0.0.1"
  std::uint16_t controller_port = 0;
  std::uint16_t database_port = 0;  ///< slurmdbd's; 0 without accounting

  pid_t starter = 0;   ///< the process that makes the lab; 0 once it is up
  pid_t guardian = 0;  ///< the process that ends the lab with its owner; 0 without one
  pid_t owner = 0;
  pid_t login =
      0;  ///< the process that keeps the private /etc/hosts of controller and shells; 0 in processes mode
  pid_t munged = 0;
  pid_t controller = 0;
  pid_t database = 0;    ///< mariadbd
  pid_t accounting = 0;  ///< slurmdbd

  std::vector<Node> nodes;

  Path slurm_conf() const { return folder / "etc/slurm.conf"; }
  Path log_folder() const { return folder / "log"; }
  /// Seen alike by all nodes and by this host.
  Path shared() const { return folder / "shared"; }
  /// A node's own disk as its jobs name it: in namespaces mode the same path on every node, and another disk.
  Path local(const Node& node) const;
  /// The same folder as this host reaches it.
  Path local_from_host(const Node& node) const;
  /// nullptr when there is none of that name.
  Node* find(std::string_view node);
  const Node* find(std::string_view node) const;
};

/// Where this user's labs are: $STOKER_LAB_DIR, else /tmp/stoker-lab-<uid>.
Path labs_folder();
/// A lower-case letter, then up to ten letters and digits: it becomes part of the names of network
/// interfaces.
Status check_name(std::string_view name);

/// The lab of that name, whatever its phase. NotFound "lab1: no such lab (there are: x, y)", Corrupt when its
/// lab.json cannot be read.
Result<Lab> open(std::string_view name);
/// The lab that the text of its lab.json describes; what is missing or of another type stays as in a new Lab.
/// Corrupt when it is no JSON object.
Result<Lab> parse(std::string_view text, const Path& folder);
/// All labs of this user that can be read, by name.
Result<std::vector<Lab>> list();
/// The lab's node of that name, or NotFound "n9: no such node in lab1 (there are: n1, n2)".
Result<const Node*> find_node(const Lab& lab, std::string_view name);
/// Replaces lab.json.
Status save(const Lab& lab);

/// What makes this shell one of the lab: SLURM_CONF, and MODULEPATH with the lab's modules in front.
Environment lab_variables(const Lab& lab);
/// A program of Slurm, or any other, as a user of the lab runs it on this host: environment with SLURM_CONF.
Command client_command(const Lab& lab, std::vector<std::string> argv);
/// Any program on a node, in the folder `directory` there: enters its namespaces in namespaces mode.
Command node_command(const Lab& lab, const Node& node, std::vector<std::string> argv,
                     const Path& directory = "/");
/// The same where the controller runs: this host, but with names of nodes that resolve.
Command login_command(const Lab& lab, std::vector<std::string> argv, const Path& directory = "/");

}  // namespace stoker::lab

// The network of a lab in namespaces mode: a bridge on this host, and per node a network namespace with a
// veth pair to the bridge. Root only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "lab/lab.h"
#include "stoker/time.h"

namespace stoker::lab {

/// A machine-wide lock, held from choosing a subnet until it is in use. Uses the name of an abstract socket,
/// which disappears with the process.
class NetworkLock {
 public:
  static Result<NetworkLock> acquire(Deadline deadline);
  void release() { fd_.reset(); }

 private:
  explicit NetworkLock(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

/// The first subnet of 10.77.1 to 10.77.254 in which no interface of this host has an address. Unavailable if
/// all are in use.
Result<std::string> free_subnet();

/// Unavailable "lab: the kernel refuses namespaces to this process (Operation not permitted)", with processes
/// mode as the cure. Tested in a child process.
Status check_namespaces();
/// Exists if an interface or network namespace of a lab in this folder is present.
Status check_names_free(const Path& lab_folder);
/// Removed folders of labs of this name whose links still exist, after a crash or a deleted folder. Excludes
/// labs of other containers, whose namespaces are not in our /run/netns.
std::vector<Path> orphans_named(std::string_view name);

/// Creates bridge, namespaces and veth pairs, up and with addresses.
Status make_network(const Lab& lab);

/// The links of this host (bridge, veth ends) created by the lab of this folder, identified by their alias.
std::vector<std::string> links_of(const Path& lab_folder);
/// The network namespaces (in /run/netns) with the lab's name. They have no alias: returns an empty list if
/// the bridge of this name belongs to a different lab.
std::vector<std::string> namespaces_of(const Path& lab_folder);
/// Deletes them; returns the number deleted.
int remove_links(const std::vector<std::string>& links);
int remove_namespaces(const std::vector<std::string>& names);

}  // namespace stoker::lab

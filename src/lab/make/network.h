// The network of a lab in namespaces mode: a bridge on this host, and for each node a network namespace with
// a cable (veth) to the bridge. Root only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/time.h"
#include "lab/lab.h"

namespace stoker::lab {

/// Held by one process of this machine at a time, from choosing a subnet until it is in use. An abstract
/// socket's name: it ends with the process, and no file is left.
class NetworkLock {
 public:
  static Result<NetworkLock> acquire(Deadline deadline);
  void release() { fd_.reset(); }

 private:
  explicit NetworkLock(Fd fd) : fd_(std::move(fd)) {}
  Fd fd_;
};

/// "10.77.1", the first of 10.77.1 to 10.77.254 that no interface of this host has an address in. Unavailable
/// when there is none.
Result<std::string> free_subnet();

/// Unavailable "lab: the kernel refuses namespaces to this process (Operation not permitted)", with processes
/// mode as the cure; tried in a child.
Status check_namespaces();
/// Exists when an interface or a network namespace is there that a lab in that folder would make.
Status check_names_free(const Path& lab_folder);
/// The folders of labs of that name that are gone while their links are still here: after a crash, or after
/// somebody deleted the folder. Not among them: labs of another container, whose namespaces are not in our
/// /run/netns.
std::vector<Path> orphans_named(std::string_view name);

/// Makes bridge, namespaces and cables, all up and addressed.
Status make_network(const Lab& lab);

/// The links of this host (bridge, ends of cables) that the lab of that folder made: they carry its mark.
std::vector<std::string> links_of(const Path& lab_folder);
/// The network namespaces (in /run/netns) of a lab of that folder's name. They cannot carry a mark: none are
/// given while a bridge of the same name belongs to another.
std::vector<std::string> namespaces_of(const Path& lab_folder);
/// Deletes them; returns how many are gone.
int remove_links(const std::vector<std::string>& links);
int remove_namespaces(const std::vector<std::string>& names);

}  // namespace stoker::lab

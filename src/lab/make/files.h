// The files of a lab: Slurm's configuration, prologs, hosts, modules. Functions that return texts, for tests,
// and one that writes all files. Used by up.
#pragma once

#include <string>

#include "lab/lab.h"

namespace stoker::lab {

/// The user and machine of a lab.
struct HostInfo {
  std::string user;        ///< the user of all daemons
  std::string host;        ///< this host's name
  int cores = 1;           ///< of this machine
  std::string lmod;        ///< Lmod's init/bash; empty when it is not installed
  std::string stoker_bin;  ///< the folder of the command `stoker`
};
/// Reads user and machine of this process.
Result<HostInfo> read_host_info();

std::string slurm_conf(const Lab& lab, const HostInfo& host_info);
std::string gres_conf(const Lab& lab);
std::string slurmdbd_conf(const Lab& lab, const HostInfo& host_info);
std::string hosts_file(const Lab& lab, const HostInfo& host_info);
/// The host's nsswitch.conf with `hosts: files`: a DNS lookup takes 10 s or more in a namespace without DNS.
std::string nsswitch_conf(std::string_view of_host);

/// The socket of munged, used in slurm.conf and slurmdbd.conf.
Path munge_socket(const Lab& lab);

/// Creates all folders and files below lab.folder. NoSpace on a full disk.
Status write_files(const Lab& lab, const HostInfo& host_info);

}  // namespace stoker::lab

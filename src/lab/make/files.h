// The files of a lab: Slurm's configuration, prologs, hosts, modules. Pure texts (for the tests), and writing
// them all. Used by up.
#pragma once

#include <string>

#include "lab/lab.h"

namespace stoker::lab {

/// Who and where the lab runs, as the files need to know.
struct Site {
  std::string user;        ///< whom all daemons run as
  std::string host;        ///< this host's name
  int cores = 1;           ///< of this machine
  std::string lmod;        ///< Lmod's init/bash; empty when it is not installed
  std::string stoker_bin;  ///< the folder of the command `stoker`
};
/// Looks at this machine and process.
Result<Site> this_site();

std::string slurm_conf(const Lab& lab, const Site& site);
std::string gres_conf(const Lab& lab);
std::string slurmdbd_conf(const Lab& lab, const Site& site);
std::string hosts_file(const Lab& lab, const Site& site);
/// The host's nsswitch.conf with `hosts: files`: a look-up that would ask DNS takes 10 s or more where the
/// namespace has none.
std::string nsswitch_conf(std::string_view of_host);

/// Where munged listens; slurm.conf and slurmdbd.conf name it.
Path munge_socket(const Lab& lab);

/// Makes all folders and files below lab.folder. NoSpace on a full disk.
Status write_files(const Lab& lab, const Site& site);

}  // namespace stoker::lab

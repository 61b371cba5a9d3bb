#include "lab/make/database.h"

#include "base/file.h"
#include "lab/launch.h"
#include "lab/make/tools.h"

namespace stoker::lab {
namespace {

constexpr const char* kSystemTables = "/usr/share/mysql/mysql_system_tables.sql";

// Small, and without disk syncs, because the data is disposable.
std::vector<std::string> mariadbd(const Lab& lab, const HostInfo& host_info) {
  return {"mariadbd",
          "--no-defaults",
          "--user=" + host_info.user,
          format("--datadir={}/database", lab.folder),
          format("--tmpdir={}/run", lab.folder),
          "--innodb-data-file-path=ibdata1:4M:autoextend",
          "--innodb-autoextend-increment=1",
          "--innodb-temp-data-file-path=ibtmp1:1M:autoextend",
          "--innodb-log-file-size=4M",
          "--innodb-buffer-pool-size=16M",
          "--innodb-flush-method=nosync",
          "--innodb-flush-log-at-trx-commit=0",
          "--innodb-doublewrite=OFF",
          "--innodb-use-native-aio=OFF",
          "--sync-frm=OFF",
          "--innodb-file-per-table=OFF",
          "--aria-sync-log-dir=NEVER",
          "--performance-schema=OFF"};
}

Path socket_of(const Lab& lab) { return lab.folder / "run/mariadb.socket"; }

// Only the system tables: help texts and the sys schema take most of the time of mariadb-install-db.
Status make_system_tables(const Lab& lab, const std::vector<std::string>& server, Deadline deadline) {
  STOKER_RETURN_IF_ERROR(make_directories(lab.folder / "database"));
  STOKER_ASSIGN_OR_RETURN(tables, read_file(kSystemTables));
  const Path script = lab.folder / "run/tables.sql";
  STOKER_RETURN_IF_ERROR(
      write_file(script, "create database mysql;\nuse mysql;\nset @auth_root_socket=NULL;\n" + tables));
  STOKER_ASSIGN_OR_RETURN(input, File::open_read(script));
  STOKER_ASSIGN_OR_RETURN(log, File::create(lab.log_folder() / "mariadbd-bootstrap.out"));
  Command command;
  command.argv = server;
  command.argv[0] = find_tool("mariadbd");
  command.argv.push_back("--bootstrap");
  command.stdin_fd = input.fd();
  command.stdout_fd = command.stderr_fd = log.fd();
  command.environment = Environment{{"PATH", "/usr/bin:/bin"}, {"STOKER_LAB_MEMBER", lab.folder.string()}};
  STOKER_ASSIGN_OR_RETURN(child, Child::spawn(command));
  auto exit = child.wait(deadline);
  if (!exit) return startup_timeout(lab, {"mariadbd-bootstrap", child.pid()});
  return exit->ok() ? Status() : ended_early(lab, {"mariadbd-bootstrap", child.pid()});
}

}  // namespace

Status start_database(Lab& lab, const HostInfo& host_info, Deadline deadline) {
  const std::vector<std::string> server = mariadbd(lab, host_info);
  STOKER_RETURN_IF_ERROR(make_system_tables(lab, server, deadline));
  Daemon daemon;
  daemon.name = "mariadbd";
  daemon.argv = server;
  daemon.argv.insert(daemon.argv.end(),
                     {format("--socket={}", socket_of(lab)), "--skip-networking", "--skip-grant-tables",
                      format("--pid-file={}/run/mariadbd.pid", lab.folder)});
  STOKER_ASSIGN_OR_RETURN(pid, launch(lab, daemon));
  lab.database = pid;
  return {};
}

Status start_accounting(Lab& lab, const HostInfo& host_info, Deadline deadline) {
  STOKER_RETURN_IF_ERROR(
      wait_until(lab, {"mariadbd", lab.database}, deadline, [&] { return path_exists(socket_of(lab)); }));
  Daemon daemon;
  daemon.name = "slurmdbd";
  daemon.argv = {"slurmdbd", "-D"};
  daemon.extra = {{"MYSQL_UNIX_PORT", socket_of(lab).string()}};
  STOKER_ASSIGN_OR_RETURN(pid, launch(lab, daemon));
  lab.accounting = pid;
  const auto asks = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"sacctmgr", "--immediate", "--quiet", "--noheader"});
    return client_command(lab, std::move(words));
  };
  STOKER_RETURN_IF_ERROR(wait_until(lab, {"slurmdbd", lab.accounting}, deadline, [&] {
    const auto answer = run_program(asks({"show", "cluster"}), Deadline::after(std::chrono::seconds(5)));
    return answer && answer->exit.ok();
  }));
  const std::vector<std::string> rows[] = {
      {"add", "cluster", lab.name},
      {"add", "account", "lab", "Description=lab", "Organization=lab"},
      {"add", "user", host_info.user, "Account=lab"},
  };
  for (const auto& row : rows) {
    if (auto added = run_tool(lab.name, asks(row), deadline); !added) return added.error();
  }
  return {};
}

}  // namespace stoker::lab

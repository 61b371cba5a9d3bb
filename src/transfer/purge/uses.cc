#include "transfer/purge/uses.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <unistd.h>

#include "base/process.h"
#include "record/run_folder.h"
#include "record/state.h"
#include "stage/cache/eviction.h"
#include "stage/cache/use_lease.h"

namespace stoker::transfer {
namespace {

namespace fs = std::filesystem;

constexpr Duration kSlurmTimeout = std::chrono::seconds(60);
constexpr std::string_view kSeparators = " \t\r\n\"'`,;:=(){}[]<>|&$";

bool is_in(const Path& path, const Path& folder) {
  const std::string text = path.string(), begin = folder.string();
  return text.starts_with(begin) && (text.size() == begin.size() || text[begin.size()] == '/');
}

bool names_folder(Path path, const Path& folder, const Path& root) {
  path = (path / "").lexically_normal().parent_path();
  const bool is_above = is_in(folder, path) && is_in(path, root) && path != root;
  return is_in(path, folder) || is_above;
}

// Files, working folder and maps of a process, and its arguments.
std::vector<std::string> paths_of(const Path& process) {
  std::vector<std::string> paths;
  std::error_code error;
  for (const char* link : {"cwd", "exe"}) {
    const Path target = fs::read_symlink(process / link, error);
    if (!error) paths.push_back(target.string());
  }
  if (const auto names = list_directory(process / "fd"); names.ok()) {
    for (const std::string& name : *names) {
      const Path target = fs::read_symlink(process / "fd" / name, error);
      if (!error) paths.push_back(target.string());
    }
  }
  if (const auto maps = read_pseudo_file(process / "maps"); maps.ok()) {
    for (std::string_view line : split(*maps, '\n')) {
      if (const std::size_t slash = line.find('/'); slash != std::string_view::npos)
        paths.emplace_back(line.substr(slash));
    }
  }
  const auto arguments = read_pseudo_file(process / "cmdline");
  const Path folder = fs::read_symlink(process / "cwd", error);
  for (std::string_view word : split(arguments.ok() ? *arguments : std::string(), '\0')) {
    if (!word.empty() && word[0] != '-') paths.push_back((folder / word).lexically_normal().string());
  }
  return paths;
}

Result<std::string> ask_slurm(std::vector<std::string> words) {
  const std::string name = words.front();
  const auto output = run_program({.argv = std::move(words), .environment = {}, .directory = {}},
                                  Deadline::after(kSlurmTimeout));
  if (!output.ok()) return output.status();
  if (output->exit.ok()) return output->out;
  return unavailable("{}: {}", name,
                     output->err.empty() ? to_text(output->exit)
                                         : printable(trim(output->err.substr(0, output->err.find('\n')))));
}

// squeue of a machine without slurm.conf looks for a controller in the DNS.
bool is_without_cluster(const Status& status) {
  return status.message().find("resolve_ctls_from_dns_srv") != std::string_view::npos ||
         status.message().find("Could not establish a configuration source") != std::string_view::npos;
}

}  // namespace

bool mentions(std::string_view text, const Path& working_folder, const Path& folder, const Path& root) {
  // Also a path with separators in it.
  if (text.find(folder.string()) != std::string_view::npos) return true;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(kSeparators), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty() || (word[0] != '/' && working_folder.empty())) continue;
    if (names_folder(working_folder / word, folder, root)) return true;
  }
  return false;
}

Result<Uses> Uses::collect(const Path& root, const Path& cache) {
  Uses uses(root);
  uses.refresh_processes();
  STOKER_RETURN_IF_ERROR(uses.collect_jobs());
  uses.collect_cache(cache);
  return uses;
}

void Uses::refresh_processes() {
  open_.clear();
  const auto names = list_directory("/proc");
  for (std::size_t i = 0; names.ok() && i < names->size(); ++i) {
    std::int64_t pid = 0;
    if (!parse_number((*names)[i], &pid) || pid == static_cast<std::int64_t>(::getpid())) continue;
    for (std::string& path : paths_of(Path("/proc") / (*names)[i])) {
      if (is_in(path, root_)) open_.push_back({static_cast<int>(pid), std::move(path)});
    }
  }
}

Status Uses::collect_jobs() {
  const auto queue = ask_slurm({"squeue", "--me", "--noheader", "--format=%i|%Z"});
  // No Slurm here, or its programs without a cluster.
  if (!queue.ok() && (queue.status().code() == Code::not_found || is_without_cluster(queue.status())))
    return {};
  if (!queue.ok()) return queue.status();
  for (std::string_view line : split(*queue, '\n')) {
    const std::size_t bar = line.find('|');
    if (bar == std::string_view::npos) continue;
    const std::string job(trim(line.substr(0, bar)));
    const auto script = ask_slurm({"scontrol", "write", "batch_script", job, "-"});
    works_.push_back({.name = format("job {}", printable(job)),
                      .working_folder = std::string(trim(line.substr(bar + 1))),
                      .text = script.ok() ? *script : "",
                      .is_active = true});
  }
  return {};
}

void Uses::collect_cache(const Path& path) {
  const auto cache = stage::CacheFolder::find(path);
  if (!cache.ok()) return;
  const auto datasets = stage::cached_datasets(*cache);
  const auto leases = stage::living_leases(*cache);
  if (!datasets.ok() || !leases.ok()) return;
  for (const stage::CachedDataset& dataset : *datasets) {
    CacheUse use{.version = dataset.version,
                 .source = dataset.use.source.lexically_normal(),
                 .time = dataset.use.last_used,
                 .user = ""};
    for (const stage::DatasetLease& lease : *leases) {
      if (lease.version == dataset.version)
        use.user = format("process {} on {}", lease.process.pid, printable(lease.process.host));
    }
    cached_.push_back(std::move(use));
  }
}

void Uses::add_run(const Path& run_folder) {
  const auto run = record::RunFolder::open(run_folder);
  if (!run.ok()) return;
  const record::RunState state = record::derive_state(*run);
  Work work{.name = format("run {}", run->id()),
            .working_folder = run->description().working_directory,
            .text = join(run->description().command, " ") + "\n",
            .is_active = state.state == record::State::running || state.state == record::State::queued,
            .ended = state.ended};
  if (const auto text = read_file(run->job()); text.ok()) work.text += *text;
  const auto attempts = run->attempts();
  for (std::size_t i = 0; attempts.ok() && i < attempts->size(); ++i) {
    if (const auto text = read_file((*attempts)[i].job()); text.ok()) work.text += "\n" + *text;
  }
  works_.push_back(std::move(work));
}

std::string Uses::in_use(const Path& folder, std::string_view version) const {
  for (const OpenPath& each : open_) {
    if (is_in(each.path, folder)) return format("process {} uses {}", each.pid, printable(each.path));
  }
  for (const CacheUse& each : cached_) {
    if (!each.user.empty() && (each.version == version || is_in(each.source, folder)))
      return format("{} has it in the node-local cache", each.user);
  }
  for (const Work& work : works_) {
    if (!work.is_active) continue;
    const bool is_there = is_in(work.working_folder, folder);
    if (is_there || mentions(work.text, work.working_folder, folder, root_))
      return format("{} names it", work.name);
  }
  return "";
}

std::optional<RecordedUse> Uses::last_use(const Path& folder) const {
  std::optional<RecordedUse> last;
  const auto add = [&](double time, const std::string& by) {
    if (time > 0 && (!last || time > last->time)) last = {.time = time, .by = by};
  };
  for (const CacheUse& each : cached_) {
    if (is_in(each.source, folder)) add(each.time, "the node-local cache");
  }
  for (const Work& work : works_) {
    if (!work.is_active && mentions(work.text, work.working_folder, folder, root_))
      add(work.ended, work.name);
  }
  return last;
}

}  // namespace stoker::transfer

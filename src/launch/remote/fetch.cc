// Protocol of a fetch:
//   1. receive the folder as a tar into a hidden file next to the runs
//   2. unpack it into a hidden folder, with a marker that it was fetched
//   3. rename an older copy away, and this one into its place     <- the run exists
//   4. remove the older copy
// A crash leaves only hidden files; between the two renames of 3 it leaves no copy, and the run can be
// fetched again.
#include "launch/remote/fetch.h"

#include <chrono>

#include "record/run_folder.h"
#include "stage/unpack.h"

namespace stoker::launch {
namespace {

constexpr std::string_view kMark = ".stoker-fetched";

class ScratchFolder {
 public:
  explicit ScratchFolder(const Path& runs) : path_(runs / (".stoker-fetch-" + random_name())) {}
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  ~ScratchFolder() { (void)remove_tree(path_); }
  const Path& path() const { return path_; }

 private:
  Path path_;
};

Status replace(const Path& fresh, const Path& target, const ScratchFolder& hidden, bool* replaced_older) {
  *replaced_older = path_exists(target);
  if (*replaced_older && !path_exists(target / kMark))
    return exists("{}: already exists, and was not fetched", printable(target.string()));
  if (*replaced_older) STOKER_RETURN_IF_ERROR(rename_path(target, hidden.path() / "older"));
  return rename_path(fresh, target);
}

}  // namespace

Result<std::optional<FetchResult>> fetch_run(RemoteCall& call, const RemoteRequest& request,
                                             const RemoteHost& host, const Path& runs, int* code) {
  STOKER_RETURN_IF_ERROR(make_directories(runs));
  const ScratchFolder hidden(runs);
  STOKER_RETURN_IF_ERROR(make_directory(hidden.path()));
  const Path tar = hidden.path() / "tar", folder = hidden.path() / "run";
  STOKER_ASSIGN_OR_RETURN(file, File::create_new(tar));
  STOKER_ASSIGN_OR_RETURN(exit, call.run(request, nullptr, file.fd()));
  *code = exit;
  if (exit != 0) return std::optional<FetchResult>();
  STOKER_RETURN_IF_ERROR(file.close());
  STOKER_RETURN_IF_ERROR(make_directory(folder));
  NoProgress progress;
  const auto unpacked =
      stage::unpack(tar, folder, {.links = stage::OutsideLinks::kept, .threads = 2}, progress);
  if (!unpacked.ok()) return Status(unpacked.status()).with_context(host.host);
  STOKER_ASSIGN_OR_RETURN(names, list_directory(folder));
  if (names.size() != 1) return corrupt("{}: sent no run folder", host.host);
  STOKER_ASSIGN_OR_RETURN(run, record::RunFolder::open(folder / names.front()));
  STOKER_RETURN_IF_ERROR(write_file(run.folder() / kMark, format("{}:{}\n", host.host, host.folder)));
  FetchResult fetched{.folder = runs / run.id(), .files = unpacked->files, .bytes = unpacked->bytes};
  STOKER_RETURN_IF_ERROR(replace(run.folder(), fetched.folder, hidden, &fetched.replaced_older));
  return std::optional(std::move(fetched));
}

}  // namespace stoker::launch

// This end of `--host`: an ssh to the other one, and what comes of it. Main thread only.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/file.h"
#include "base/status.h"
#include "launch/remote/message.h"

namespace stoker::launch {

/// A stoker on another machine that has answered and waits for a request. Destroying it ends the connection.
class RemoteCall {
 public:
  /// Connects. ssh asks for passwords on the terminal, as always. Unavailable with ssh's own words when there
  /// is no connection, or no stoker there; Invalid when it is one of another version; Cancelled when
  /// `should_stop`.
  static Result<RemoteCall> open(const RemoteHost& host, std::function<bool()> should_stop);
  RemoteCall(RemoteCall&&) noexcept;
  RemoteCall& operator=(RemoteCall&&) noexcept;
  ~RemoteCall();

  /// Sends the request, then `tar`, if it has some; passes what the other end prints on to `out_fd` and to
  /// standard error; returns its exit code. Once `should_stop` the other end is told to end. Unavailable when
  /// the connection breaks.
  Result<int> run(const RemoteRequest& request, const File* tar, int out_fd);

 private:
  class Link;
  explicit RemoteCall(std::unique_ptr<Link> link);
  std::unique_ptr<Link> link_;
};

/// What came of a run.
struct Fetched {
  Path folder;
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  bool is_again = false;  ///< an older copy made room for it
};
/// Fetches a run's folder into `runs`: it is whole there, or as it was. Exists when a run of that name is
/// there that was not fetched. Nothing, with the other end's exit code in `code`, when that has said itself
/// what is wrong.
Result<std::optional<Fetched>> fetch_run(RemoteCall& call, const RemoteRequest& request,
                                         const RemoteHost& host, const Path& runs, int* code);

}  // namespace stoker::launch

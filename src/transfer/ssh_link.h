// One ssh connection to the far side of a transfer: lines and bytes in both directions. Answers that arrive
// while it sends are buffered, so neither side waits for the other. One thread at a time.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/process.h"
#include "stoker/status.h"

namespace stoker::transfer {

class SshLink {
 public:
  /// `host`: for messages.
  SshLink(std::string host, std::function<bool()> should_stop)
      : host_(std::move(host)), should_stop_(std::move(should_stop)) {}
  SshLink(const SshLink&) = delete;
  SshLink& operator=(const SshLink&) = delete;
  /// Ends the connection; kills ssh after 10 s.
  ~SshLink();

  /// Starts ssh. NotFound without it.
  Status start(const std::vector<std::string>& arguments);
  Status send(std::string_view bytes);
  /// The next line without its end. Unavailable at the end, Timeout, Cancelled.
  Result<std::string> line(Deadline deadline);
  /// Fills `out`.
  Status receive(std::span<char> out);
  /// Why the connection ended, with the last line of ssh's messages.
  Status ended();
  /// The end of what the other side printed, and of ssh's messages.
  std::string last_output() const;

 private:
  Status poll_once(bool is_sending, Deadline deadline);
  bool read_into(Fd& fd, std::string& buffer);

  const std::string host_;
  const std::function<bool()> should_stop_;
  std::optional<Child> ssh_;
  Fd to_;
  Fd from_;
  Fd errors_;
  std::string received_;
  std::string error_text_;
  std::string last_line_;
};

}  // namespace stoker::transfer

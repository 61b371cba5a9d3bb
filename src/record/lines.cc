#include "record/lines.h"

#include <algorithm>
#include <cerrno>
#include <string>
#include <unistd.h>

namespace stoker::record {

namespace {

/// Splits a stream of pieces into lines; buffers at most `max_line` bytes of an unfinished line.
class LineCutter {
 public:
  LineCutter(std::size_t max_line, const LineVisitor& visit) : max_line_(max_line), visit_(visit) {}

  /// Returns false once the visitor has stopped.
  bool feed(std::string_view piece) {
    while (!piece.empty()) {
      const std::size_t end = piece.find('\n');
      append(piece.substr(0, end));
      if (end == std::string_view::npos) return true;
      piece.remove_prefix(end + 1);
      if (!emit(LineKind::whole)) return false;
    }
    return true;
  }

  void finish() {
    if (!pending_.empty() || too_long_) emit(LineKind::torn);
  }

 private:
  void append(std::string_view part) {
    const std::size_t room = max_line_ - std::min(max_line_, pending_.size());
    too_long_ = too_long_ || part.size() > room;
    pending_.append(part.substr(0, room));
  }

  bool emit(LineKind kind) {
    std::string_view line = pending_;
    if (line.ends_with('\r')) line.remove_suffix(1);
    const bool more = visit_(line, too_long_ ? LineKind::too_long : kind);
    pending_.clear();
    too_long_ = false;
    return more;
  }

  std::size_t max_line_;
  const LineVisitor& visit_;
  std::string pending_;
  bool too_long_ = false;
};

}  // namespace

Status visit_lines(const Path& file, std::size_t max_line, const LineVisitor& visit) {
  STOKER_ASSIGN_OR_RETURN(opened, File::open_regular(file));
  LineCutter cutter(max_line, visit);
  std::string buffer(1u << 18, '\0');
  for (;;) {
    const ssize_t n = ::read(opened.fd(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return posix_error(printable(file.string()), errno);
    if (n == 0) break;
    if (!cutter.feed(std::string_view(buffer).substr(0, static_cast<std::size_t>(n)))) return {};
  }
  cutter.finish();
  return {};
}

void visit_text(std::string_view text, std::size_t max_line, const LineVisitor& visit) {
  LineCutter cutter(max_line, visit);
  if (cutter.feed(text)) cutter.finish();
}

Status append_record(File& file, std::string_view record, bool& mid_line) {
  std::string closed;
  if (mid_line) {
    closed = '\n';
    closed += record;
    record = closed;
  }
  Status status = file.write(record);
  // File::write may have written a part before it failed; an extra line break is harmless.
  mid_line = !status.ok();
  return status;
}

Result<bool> ends_mid_line(const Path& file) {
  STOKER_ASSIGN_OR_RETURN(opened, File::open_regular(file));
  STOKER_ASSIGN_OR_RETURN(size, opened.size());
  if (size == 0) return false;
  std::byte last{};
  STOKER_RETURN_IF_ERROR(opened.read_at(size - 1, std::span(&last, 1)));
  return last != std::byte{'\n'};
}

}  // namespace stoker::record

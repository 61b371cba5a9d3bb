#include "observe/text_follower.h"

#include <algorithm>

#include "base/file.h"

namespace stoker::observe {
namespace {

constexpr std::uint64_t kPiece = 64 * 1024;
constexpr std::size_t kLongestLine = 1u << 20;

}  // namespace

Status TextFollower::read_new(const Sink& sink) {
  const auto file = File::open_regular(path_);
  if (!file.ok()) return file.error().code() == Code::not_found ? Status() : file.error();
  for (;;) {
    STOKER_ASSIGN_OR_RETURN(piece, file->read_available(offset_, kPiece));
    if (piece.empty()) return {};
    offset_ += piece.size();
    partial_ += piece;
    std::size_t begin = 0;
    for (std::size_t end = partial_.find('\n'); end != std::string::npos; end = partial_.find('\n', begin)) {
      sink(std::string_view(partial_).substr(begin, end - begin));
      begin = end + 1;
    }
    partial_.erase(0, begin);
    if (partial_.size() > kLongestLine) finish(sink);
  }
}

void TextFollower::finish(const Sink& sink) {
  if (!partial_.empty()) sink(partial_);
  partial_.clear();
}

}  // namespace stoker::observe

#include "transfer/serve.h"

#include <array>
#include <unistd.h>

#include "transfer/folder_endpoint.h"
#include "transfer/protocol.h"

namespace stoker::transfer {
namespace {

// A request: its verb, a path, and two more words.
struct FarRequest {
  std::string verb;
  std::string path;
  std::string second;
  std::string third;
};

Result<FarRequest> parse_request(std::string_view line) {
  const auto words = split(line, ' ');
  if (words.size() < 2 || words.size() > 4) return corrupt("transfer: invalid request");
  STOKER_ASSIGN_OR_RETURN(path, decode_path(words[1]));
  FarRequest request{.verb = std::string(words[0]), .path = std::move(path), .second = {}, .third = {}};
  if (words.size() > 2) request.second = words[2];
  if (words.size() > 3) request.third = words[3];
  return request;
}

class TransferServer {
 public:
  TransferServer(launch::Incoming& in, int out_fd) : in_(in), out_fd_(out_fd), folder_(folder_endpoint()) {}

  Status run() {
    for (;;) {
      const auto line = in_.line(Deadline::never());
      if (!line.ok() && line.status().code() == Code::unavailable) return {};  // the end of the input
      STOKER_RETURN_IF_ERROR(line.status());
      STOKER_ASSIGN_OR_RETURN(request, parse_request(*line));
      const auto answer = serve(request);
      if (answer.ok()) {
        STOKER_RETURN_IF_ERROR(write(*answer));
        continue;
      }
      STOKER_RETURN_IF_ERROR(write(format("error {}\n", printable(answer.status().message()))));
      if (request.verb == "put") return {};  // its bytes may be left in the input
    }
  }

 private:
  Result<std::string> serve(const FarRequest& request) {
    if (request.verb == "look") {
      STOKER_ASSIGN_OR_RETURN(facts, folder_->look(request.path));
      return facts_text(facts);
    }
    if (request.verb == "size") {
      STOKER_ASSIGN_OR_RETURN(sizes, folder_->sizes({request.path}));
      return sizes[0] ? format("size {}\n", *sizes[0]) : "size -\n";
    }
    if (request.verb == "entries") {
      STOKER_ASSIGN_OR_RETURN(count, folder_->entries(request.path));
      return format("entries {}\n", count);
    }
    if (request.verb == "make") return ok_after(folder_->make_folder(request.path));
    if (request.verb == "publish") {
      STOKER_ASSIGN_OR_RETURN(path, decode_path(request.second));
      STOKER_ASSIGN_OR_RETURN(aside, decode_path(request.third));
      return ok_after(folder_->publish(request.path, path, aside));
    }
    std::uint64_t block = 0, count = 0;
    if (!parse_number(request.second, &block) || !parse_number(request.third, &count))
      return corrupt("transfer: invalid request");
    return serve_blocks(request, block, count);
  }

  Result<std::string> serve_blocks(const FarRequest& request, std::uint64_t block, std::uint64_t count) {
    if (request.verb == "put") {
      if (count > kBlock) return corrupt("transfer: invalid request");
      buffer_.resize(count);
      STOKER_RETURN_IF_ERROR(in_.read(buffer_));
      return ok_after(folder_->put(request.path, block, buffer_));
    }
    if (request.verb == "hash") {
      STOKER_ASSIGN_OR_RETURN(digests, folder_->hashes(request.path, {block, count}));
      std::string line = "hash";
      for (const Digest& digest : digests) line += " " + hex(digest);
      return line + "\n";
    }
    if (request.verb == "get") {
      STOKER_ASSIGN_OR_RETURN(bytes, folder_->get(request.path, block, count));
      return format("data {}\n", bytes.size()) + bytes;
    }
    return corrupt("transfer: invalid request");
  }

  static Result<std::string> ok_after(const Status& status) {
    if (!status.ok()) return status;
    return std::string("ok\n");
  }

  Status write(std::string_view text) const {
    while (!text.empty()) {
      const ssize_t count = ::write(out_fd_, text.data(), text.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return unavailable("remote: the other end closed the connection");
      text.remove_prefix(static_cast<std::size_t>(count));
    }
    return {};
  }

  launch::Incoming& in_;
  const int out_fd_;
  const std::unique_ptr<Endpoint> folder_;
  std::string buffer_;
};

}  // namespace

Status serve(launch::Incoming& in, int out_fd) { return TransferServer(in, out_fd).run(); }

}  // namespace stoker::transfer

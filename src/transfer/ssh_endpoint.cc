#include "transfer/ssh_endpoint.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <utility>

#include "base/version.h"
#include "transfer/protocol.h"
#include "transfer/ssh_link.h"

namespace stoker::transfer {
namespace {

using namespace std::chrono_literals;

// The user may be looking for a second factor.
constexpr Duration kGreetingLimit = 5min;
// Long enough to sync a dataset, or to hash blocks on a busy disk.
constexpr Duration kAnswerLimit = 30min;
constexpr std::size_t kMaxPendingPuts = 8;

// Errors of the far side, by their text.
constexpr std::array<std::pair<std::string_view, Code>, 6> kErrorCodes = {{
    {"no space left", Code::no_space},
    {"quota exceeded", Code::no_space},
    {"created there meanwhile", Code::exists},
    {"no such file", Code::not_found},
    {"missing or shorter", Code::corrupt},
    {"ends at byte", Code::corrupt},
}};

Status far_error(const std::string& host, std::string_view text) {
  const std::string lower = to_lower(text);
  Code code = Code::invalid;
  for (const auto& [words, each] : kErrorCodes) {
    if (lower.find(words) == std::string::npos) continue;
    code = each;
    break;
  }
  return {code, format("{}: {}", host, text.empty() ? "the request failed there" : printable(text))};
}

std::vector<std::string> ssh_words(const SshTarget& target, std::size_t script_bytes) {
  std::vector<std::string> words = {"ssh", "-T", "-o", "ServerAliveInterval=30"};
  if (!target.may_ask) words.insert(words.end(), {"-o", "BatchMode=yes"});
  if (!target.transfer_node.empty())
    words.insert(words.end(), {"-o", format("HostName={}", target.transfer_node)});
  words.insert(words.end(), {"--", target.host.host,
                             format("exec sh -c 'eval \"$(dd bs=1 count={} 2>/dev/null)\"'", script_bytes)});
  return words;
}

class SshEndpoint final : public Endpoint {
 public:
  SshEndpoint(const SshTarget& target, std::function<bool()> should_stop)
      : target_(target),
        host_(target.host.host),
        should_stop_(std::move(should_stop)),
        link_(host_, should_stop_) {}

  Status connect() {
    const std::string nonce = random_name(16);
    const std::string script =
        format("nonce={}\nwanted={}\nprogram={}\n", nonce, version(), shell_quote(target_.host.program)) +
        std::string(far_side_script());
    STOKER_RETURN_IF_ERROR(link_.start(ssh_words(target_, script.size())));
    STOKER_RETURN_IF_ERROR(link_.send(script));
    const Deadline deadline = Deadline::after(kGreetingLimit);
    for (;;) {
      const auto line = link_.line(deadline);
      if (!line.ok()) return refused(line.status());
      if (launch::parse_greeting(*line, nonce)) return begin_stoker();
      const std::string shell = format("stoker-shell {} ", nonce);
      if (line->starts_with(shell)) return begin_shell(line->substr(shell.size()));
    }
  }

  Result<PathFacts> look(const std::string& path) override {
    STOKER_RETURN_IF_ERROR(request(format("look {}\n", encode_path(path))));
    std::vector<std::string> lines;
    do {
      STOKER_ASSIGN_OR_RETURN(line, answer(""));
      lines.push_back(std::move(line));
    } while (lines.back() != "end");
    auto facts = parse_facts(lines);
    if (!facts.ok()) return Status(facts.status()).with_context(host_);
    return facts;
  }

  Result<std::vector<std::optional<std::uint64_t>>> sizes(const std::vector<std::string>& files) override {
    std::string text;
    for (const std::string& file : files) text += format("size {}\n", encode_path(file));
    STOKER_RETURN_IF_ERROR(request(text));
    std::vector<std::optional<std::uint64_t>> found;
    for (std::size_t i = 0; i < files.size(); ++i) {
      STOKER_ASSIGN_OR_RETURN(size, answer("size "));
      std::uint64_t bytes = 0;
      if (size != "-" && !parse_number(size, &bytes)) return invalid_answer();
      found.push_back(size == "-" ? std::nullopt : std::optional(bytes));
    }
    return found;
  }

  Result<std::uint64_t> entries(const std::string& folder) override {
    STOKER_RETURN_IF_ERROR(request(format("entries {}\n", encode_path(folder))));
    STOKER_ASSIGN_OR_RETURN(text, answer("entries "));
    std::uint64_t count = 0;
    if (!parse_number(text, &count)) return invalid_answer();
    return count;
  }

  Status make_folder(const std::string& folder) override {
    STOKER_RETURN_IF_ERROR(request(format("make {}\n", encode_path(folder))));
    return answer("ok").status();
  }

  Status put(const std::string& file, std::uint64_t block, std::string_view bytes) override {
    STOKER_RETURN_IF_ERROR(link_.send(format("put {} {} {}\n", encode_path(file), block, bytes.size())));
    while (!bytes.empty()) {
      const std::string_view piece = bytes.substr(0, target_.pacer->piece());
      target_.pacer->acquire(piece.size(), should_stop_);
      STOKER_RETURN_IF_ERROR(link_.send(piece));
      bytes.remove_prefix(piece.size());
    }
    pending_puts_ += 1;
    while (pending_puts_ > kMaxPendingPuts) STOKER_RETURN_IF_ERROR(finish_put());
    return {};
  }

  Result<std::vector<Digest>> hashes(const std::string& file, BlockRange range) override {
    STOKER_RETURN_IF_ERROR(request(format("hash {} {} {}\n", encode_path(file), range.first, range.count)));
    STOKER_ASSIGN_OR_RETURN(text, answer("hash"));
    std::vector<Digest> digests;
    for (std::string_view word : split(text, ' ')) {
      if (word.empty()) continue;
      STOKER_ASSIGN_OR_RETURN(digest, parse_digest(word));
      digests.push_back(digest);
    }
    if (digests.size() != range.count) return invalid_answer();
    return digests;
  }

  Result<std::string> get(const std::string& file, std::uint64_t block, std::uint64_t bytes) override {
    STOKER_RETURN_IF_ERROR(request(format("get {} {} {}\n", encode_path(file), block, bytes)));
    STOKER_ASSIGN_OR_RETURN(text, answer("data "));
    if (text != std::to_string(bytes)) return invalid_answer();
    std::string data(bytes, '\0');
    std::span<char> rest(data);
    while (!rest.empty()) {
      const auto piece = rest.first(std::min<std::size_t>(rest.size(), target_.pacer->piece()));
      target_.pacer->acquire(piece.size(), should_stop_);
      STOKER_RETURN_IF_ERROR(link_.receive(piece));
      rest = rest.subspan(piece.size());
    }
    return data;
  }

  Status publish(const std::string& pending, const std::string& path, const std::string& aside) override {
    STOKER_RETURN_IF_ERROR(
        request(format("publish {} {} {}\n", encode_path(pending), encode_path(path), encode_path(aside))));
    return answer("ok").status();
  }

  std::string hashed_by() const override { return hashed_by_; }

 private:
  Status begin_stoker() {
    hashed_by_ = format("stoker {}", version());
    return link_.send(launch::to_line({.kind = launch::RemoteRequest::Kind::transfer,
                                       .words = {"transfer"},
                                       .folder = ".",
                                       .sent_below = "",
                                       .files = {},
                                       .host_options = {}}));
  }

  Status begin_shell(const std::string& tool) {
    hashed_by_ = printable(trim(tool));
    if (hashed_by_ != "none") return {};
    return unavailable("{}: has neither stoker {} nor sha256sum, shasum, openssl or python3, or an old dd",
                       host_, version())
        .cure("--host-program PATH      (stoker {} on the host)", version());
  }

  // ssh ended, or no greeting came.
  Status refused(const Status& status) const {
    if (status.code() == Code::cancelled) return status;
    const std::string words = link_.last_output();
    const std::string node =
        target_.transfer_node.empty() ? "" : format(" (transfer node {})", target_.transfer_node);
    Status error = unavailable("{}{}: {}", host_, node, words.empty() ? "no valid answer" : words);
    if (node.empty()) return std::move(error).cure("ssh {} true", shell_quote(host_));
    return std::move(error).cure("--login-node      (connect to {} itself)", host_);
  }

  // Sends it, and collects the answers of earlier puts, which come first.
  Status request(std::string_view text) {
    STOKER_RETURN_IF_ERROR(link_.send(text));
    while (pending_puts_ > 0) STOKER_RETURN_IF_ERROR(finish_put());
    return {};
  }

  Status finish_put() {
    pending_puts_ -= 1;
    return answer("ok").status();
  }

  // The next line without `begin`.
  Result<std::string> answer(std::string_view begin) {
    STOKER_ASSIGN_OR_RETURN(line, link_.line(Deadline::after(kAnswerLimit)));
    constexpr std::string_view kError = "error ";
    if (line.starts_with(kError)) return far_error(host_, std::string_view(line).substr(kError.size()));
    if (!line.starts_with(begin)) return invalid_answer();
    return line.substr(begin.size());
  }

  Status invalid_answer() const { return unavailable("{}: no valid answer", host_); }

  const SshTarget target_;
  const std::string host_;
  const std::function<bool()> should_stop_;
  SshLink link_;
  std::string hashed_by_;
  std::size_t pending_puts_ = 0;
};

}  // namespace

Result<std::unique_ptr<Endpoint>> ssh_endpoint(const SshTarget& target, std::function<bool()> should_stop) {
  // A write to an exited ssh is reported as a broken connection.
  ::signal(SIGPIPE, SIG_IGN);
  auto endpoint = std::make_unique<SshEndpoint>(target, std::move(should_stop));
  STOKER_RETURN_IF_ERROR(endpoint->connect());
  return std::unique_ptr<Endpoint>(std::move(endpoint));
}

}  // namespace stoker::transfer

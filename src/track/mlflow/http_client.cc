#include "track/mlflow/http_client.h"

#include <algorithm>
#include <csignal>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

#include "base/file.h"
#include "base/secrets.h"
#include "stoker/text.h"

namespace stoker::track {
namespace {

using namespace std::chrono_literals;

// curl stops a request itself; this is for a curl that does not.
constexpr Duration kMargin = 5s;
constexpr int kCurlTimeout = 28;

// A file in memory that a child inherits, for a body that fits in no argument.
Result<Fd> memory_file(std::string_view text) {
  Fd file(static_cast<int>(::syscall(SYS_memfd_create, "stoker-request", 0)));
  if (!file) return posix_error("memfd_create", errno);
  for (std::string_view rest = text; !rest.empty();) {
    const ssize_t n = ::write(file.get(), rest.data(), rest.size());
    if (n < 0 && errno != EINTR) return posix_error("memfd_create", errno);
    rest.remove_prefix(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  }
  if (::lseek(file.get(), 0, SEEK_SET) != 0) return posix_error("memfd_create", errno);
  return file;
}

// A line of curl's configuration. A line break in a value must not start another option.
std::string config_line(std::string_view option, std::string_view value) {
  std::string line = format("{} = \"", option);
  for (const char c : value) {
    if (c == '\n' || c == '\r' || c == '\0') continue;
    if (c == '"' || c == '\\') line += '\\';
    line += c;
  }
  return line + "\"\n";
}

std::string seconds_text(Duration duration) { return format("{:.3f}", Seconds(duration).count()); }

// "curl: (7) Failed to connect ..." without its start.
std::string reason_of(const Captured& done) {
  std::string_view text = trim(done.err);
  text = text.substr(0, text.find('\n'));
  if (text.starts_with("curl: (")) text.remove_prefix(std::min(text.size(), text.find(')') + 1));
  text = trim(text);
  return text.empty() ? to_text(done.exit) : printable(hide_secrets(text));
}

Result<HttpAnswer> parse_answer(const Captured& done) {
  const std::size_t end = done.out.rfind('\n');
  std::int64_t status = 0;
  if (end == std::string::npos || !parse_number(std::string_view(done.out).substr(end + 1), &status))
    return unavailable("curl: printed no status");
  return HttpAnswer{static_cast<int>(status), done.out.substr(0, end)};
}

// A second for each megabyte.
Duration time_for_file(const Path& file) {
  std::error_code error;
  const std::uintmax_t bytes = file.empty() ? 0 : std::filesystem::file_size(file, error);
  return error ? Duration(0) : std::chrono::seconds(bytes / 1'000'000);
}

}  // namespace

HttpOptions http_options_from(const Environment& environment, std::string server) {
  const auto value = [&](std::string_view name) {
    const auto found = std::find_if(environment.begin(), environment.end(),
                                    [&](const auto& entry) { return entry.first == name; });
    return found == environment.end() ? std::string() : found->second;
  };
  const std::string insecure = to_lower(value("MLFLOW_TRACKING_INSECURE_TLS"));
  while (server.ends_with('/')) server.pop_back();
  return {.server = std::move(server),
          .token = value("MLFLOW_TRACKING_TOKEN"),
          .user = value("MLFLOW_TRACKING_USERNAME"),
          .password = value("MLFLOW_TRACKING_PASSWORD"),
          .ca_file = value("MLFLOW_TRACKING_SERVER_CERT_PATH"),
          .client_file = value("MLFLOW_TRACKING_CLIENT_CERT_PATH"),
          .is_unverified = insecure == "true" || insecure == "1",
          .timeout = 30s};
}

std::string HttpClient::server() const {
  const std::size_t begin = options_.server.find("://");
  const std::size_t at = options_.server.find('@');
  if (begin == std::string::npos || at == std::string::npos) return printable(options_.server);
  return printable(options_.server.substr(0, begin + 3) + options_.server.substr(at + 1));
}

Result<HttpAnswer> HttpClient::request(std::string_view method, std::string_view path,
                                       const std::optional<HttpBody>& body) const {
  std::string config = config_line("url", options_.server + std::string(path));
  const Duration limit = options_.timeout + (body ? time_for_file(body->file) : Duration(0));
  config += config_line("request", method) + config_line("max-time", seconds_text(limit)) +
            config_line("connect-timeout", "10") + config_line("write-out", "\\n%{http_code}") +
            config_line("header", "Expect:") + "silent\nshow-error\ngloboff\n";
  if (!options_.token.empty()) {
    config += config_line("header", "Authorization: Bearer " + options_.token);
  } else if (!options_.user.empty()) {
    config += config_line("user", options_.user + ":" + options_.password);
  }
  if (!options_.ca_file.empty()) config += config_line("cacert", options_.ca_file);
  if (!options_.client_file.empty()) config += config_line("cert", options_.client_file);
  if (options_.is_unverified) config += "insecure\n";
  Fd content;
  if (body) {
    config += config_line("header", format("Content-Type: {}", body->type));
    if (body->file.empty()) {
      STOKER_ASSIGN_OR_RETURN(file, memory_file(body->text));
      content = std::move(file);
      config += config_line("data-binary", format("@/proc/self/fd/{}", content.get()));
    } else {
      config += config_line("upload-file", body->file.string());
    }
  }
  STOKER_ASSIGN_OR_RETURN(input, memory_file(config));
  Command command;
  command.argv = {"curl", "-q", "--config", "-"};
  command.stdin_fd = input.get();
  command.parent_death_signal = SIGKILL;
  auto done = run_program(command, Deadline::after(limit + kMargin), 64_MiB);
  if (!done.ok() && done.error().code() == Code::not_found) return std::move(done).error();
  if (!done.ok()) return unavailable("{}: {}", server(), done.error().message());
  if (done->exit.code == kCurlTimeout)
    return timeout("{}: no answer within {}", server(), rounded_duration(limit));
  if (!done->exit.ok()) return unavailable("{}: {}", server(), reason_of(*done));
  return parse_answer(*done);
}

std::string url_encoded(std::string_view text) {
  std::string encoded;
  for (const char c : text) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                          c == '-' || c == '_' || c == '.' || c == '~';
    encoded +=
        is_plain ? std::string(1, c) : format("%{:02X}", static_cast<int>(static_cast<unsigned char>(c)));
  }
  return encoded;
}

}  // namespace stoker::track

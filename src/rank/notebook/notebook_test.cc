#include "rank/notebook/notebook.h"

#include <poll.h>
#include <sys/socket.h>

#include <gtest/gtest.h>

#include "base/thread.h"
#include "net/channel.h"

namespace stoker::rank {
namespace {

using namespace std::chrono_literals;

// Gives one connection this answer, and keeps what was asked.
class OneAnswer {
 public:
  explicit OneAnswer(std::string answer)
      : listener_(*net::Listener::open(net::ListenScope::loopback)),
        thread_([this, answer = std::move(answer)](StopToken) {
          pollfd waiting{listener_.fd(), POLLIN, 0};
          ::poll(&waiting, 1, 10'000);
          const Fd fd = listener_.accept();
          waiting = {fd.get(), POLLIN, 0};
          ::poll(&waiting, 1, 10'000);
          char asked[4096];
          const ssize_t count = ::recv(fd.get(), asked, sizeof asked, 0);
          if (count > 0) asked_.assign(asked, static_cast<std::size_t>(count));
          (void)::send(fd.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
        }) {}

  Notebook server() const {
    const std::string address = listener_.addresses().front();
    const std::size_t colon = address.rfind(':');
    std::int64_t port = 0;
    (void)parse_number(address.substr(colon + 1), &port);
    return {.program = "jupyter-lab",
            .address = address.substr(0, colon),
            .port = static_cast<int>(port),
            .token = ""};
  }
  std::string asked() {
    thread_.join();
    return asked_;
  }

 private:
  net::Listener listener_;
  std::string asked_;
  Thread thread_;
};

TEST(Notebook, is_asked_with_its_token_in_a_header) {
  OneAnswer answer("HTTP/1.1 200 OK\r\n\r\n{}");
  const Notebook server = answer.server();
  const auto status = query_notebook(server, "secret", Deadline::after(10s));
  ASSERT_TRUE(status.ok()) << status.status().to_string();
  EXPECT_EQ(*status, 200);
  EXPECT_EQ(answer.asked(), format("GET /api/status HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\n"
                                   "Authorization: token secret\r\n\r\n",
                                   server.port));
}

TEST(Notebook, is_asked_without_one) {
  OneAnswer answer("HTTP/1.1 403 Forbidden\r\n\r\n");
  const auto status = query_notebook(answer.server(), "", Deadline::after(10s));
  ASSERT_TRUE(status.ok()) << status.status().to_string();
  EXPECT_EQ(*status, 403);
  EXPECT_EQ(answer.asked().find("Authorization"), std::string::npos);
}

TEST(Notebook, an_answer_that_is_no_http_is_an_error) {
  for (const char* text : {"SSH-2.0-OpenSSH_9.2\r\n", "HTTP/1.1\n", "HTTP/1.1 abc def\r\n"}) {
    OneAnswer answer(text);
    const auto status = query_notebook(answer.server(), "", Deadline::after(10s));
    ASSERT_FALSE(status.ok()) << text;
    EXPECT_EQ(status.status().message(), "the server: invalid HTTP answer") << text;
  }
  OneAnswer silent("");
  const auto status = query_notebook(silent.server(), "", Deadline::after(10s));
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.status().message(), "the server: closed the connection");
}

TEST(Notebook, listens_where_the_other_host_sees_it) {
  EXPECT_EQ(local_address_to("127.0.0.1"), "127.0.0.1");
  EXPECT_EQ(local_address_to(""), "127.0.0.1");
  EXPECT_EQ(local_address_to("login1"), "127.0.0.1");
}

}  // namespace
}  // namespace stoker::rank

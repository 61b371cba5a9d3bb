#include "netcheck/probe/ring.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

namespace stoker::netcheck {
namespace {

constexpr int kRingTickMs = 100;
constexpr std::size_t kPiece =
    64 * 1024;  // floats of a broadcast that are forwarded before the rest has arrived

double test_value(std::size_t index) { return static_cast<double>(index % 7); }

}  // namespace

std::string_view to_text(Operation operation) {
  switch (operation) {
    case Operation::all_reduce:
      return "all-reduce";
    case Operation::reduce_scatter:
      return "reduce-scatter";
    case Operation::all_gather:
      return "all-gather";
    case Operation::broadcast:
      return "broadcast";
  }
  return "";
}

Result<Operation> parse_operation(std::string_view text) {
  for (Operation operation : kOperations) {
    if (to_text(operation) == text) return operation;
  }
  return invalid("no operation '{}'", printable(text));
}

double shortest_time(Operation operation, WorldSize size, std::uint64_t bytes, const Link& link) {
  const double n = size.value;
  if (n < 2 || link.bytes_per_s <= 0) return 0;
  const auto total = static_cast<double>(bytes);
  const double half = (n - 1) * (link.latency_s + total / n / link.bytes_per_s);
  if (operation == Operation::all_reduce) return 2 * half;
  // Pipelined along the chain: only the first piece waits for the latency of every link.
  if (operation == Operation::broadcast) return total / link.bytes_per_s;
  return half;
}

Ring::Ring(Rank own, WorldSize size, Fd next, Fd previous)
    : own_(own), size_(size), next_(std::move(next)), previous_(std::move(previous)) {
  for (const Fd* fd : {&next_, &previous_}) ::fcntl(fd->get(), F_SETFL, O_NONBLOCK);
}

std::span<float> Ring::part(std::span<float> values, int index) const {
  const auto n = static_cast<std::size_t>(size_.value);
  const auto i = static_cast<std::size_t>((index % size_.value + size_.value) % size_.value);
  const std::size_t begin = values.size() * i / n;
  return values.subspan(begin, values.size() * (i + 1) / n - begin);
}

// Sends and receives concurrently: all ranks send at once, and no socket buffer holds a whole part.
Status Ring::exchange(std::span<const float> out, std::span<float> in, const Wait& wait) {
  auto to_send = std::as_bytes(out);
  auto to_come = std::as_writable_bytes(in);
  const int before = (own_.value + size_.value - 1) % size_.value;
  const int after = (own_.value + 1) % size_.value;
  while (!to_send.empty() || !to_come.empty()) {
    pollfd waiting[] = {{to_send.empty() ? -1 : next_.get(), POLLOUT, 0},
                        {to_come.empty() ? -1 : previous_.get(), POLLIN, 0}};
    ::poll(waiting, 2, wait.deadline.poll_ms(kRingTickMs));
    if (waiting[0].revents != 0) {
      const ssize_t n = ::send(next_.get(), to_send.data(), to_send.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n > 0) to_send = to_send.subspan(static_cast<std::size_t>(n));
      if (n < 0 && errno != EAGAIN && errno != EINTR)
        return unavailable("rank {} is gone: {}", after, posix_error("send", errno).message());
    }
    if (waiting[1].revents != 0) {
      const ssize_t n = ::recv(previous_.get(), to_come.data(), to_come.size(), MSG_DONTWAIT);
      if (n > 0) to_come = to_come.subspan(static_cast<std::size_t>(n));
      if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
        return unavailable("rank {} is gone: it closed the connection", before);
    }
    if (!wait.keep_going()) return cancelled("stopped");
    if (wait.deadline.passed()) {
      return to_come.empty() ? timeout("rank {} accepts no more data", after)
                             : timeout("rank {} sends no more data", before);
    }
  }
  return {};
}

Status Ring::reduce_scatter_parts(std::span<float> values, const Wait& wait) {
  // After step s, the received part is the sum of s + 2 ranks; at the end, part `own` is complete here.
  for (int step = 0; step < size_.value - 1; ++step) {
    const auto out = part(values, own_.value - 1 - step);
    const auto into = part(values, own_.value - 2 - step);
    incoming_.resize(into.size());
    STOKER_RETURN_IF_ERROR(exchange(out, incoming_, wait));
    for (std::size_t i = 0; i < into.size(); ++i) into[i] += incoming_[i];
  }
  return {};
}

Status Ring::all_gather_parts(std::span<float> values, const Wait& wait) {
  for (int step = 0; step < size_.value - 1; ++step) {
    STOKER_RETURN_IF_ERROR(
        exchange(part(values, own_.value - step), part(values, own_.value - 1 - step), wait));
  }
  return {};
}

// Along the chain from rank 0, in pieces; each is forwarded while the next one arrives.
Status Ring::relay_broadcast(std::span<float> values, const Wait& wait) {
  const bool is_first = own_.value == 0;
  const bool is_last = own_.value == size_.value - 1;
  std::span<float> held;
  for (std::size_t begin = 0; begin < values.size() || !held.empty(); begin += kPiece) {
    std::span<float> piece;
    if (begin < values.size()) piece = values.subspan(begin, std::min(kPiece, values.size() - begin));
    const std::span<float> out = is_last ? std::span<float>() : is_first ? piece : held;
    STOKER_RETURN_IF_ERROR(exchange(out, is_first ? std::span<float>() : piece, wait));
    held = is_first ? std::span<float>() : piece;
  }
  return {};
}

Status Ring::run(Operation operation, std::span<float> values, Deadline deadline,
                 const KeepGoing& keep_going) {
  const Wait wait{deadline, keep_going};
  switch (operation) {
    case Operation::all_reduce:
      STOKER_RETURN_IF_ERROR(reduce_scatter_parts(values, wait));
      return all_gather_parts(values, wait);
    case Operation::reduce_scatter:
      return reduce_scatter_parts(values, wait);
    case Operation::all_gather:
      return all_gather_parts(values, wait);
    case Operation::broadcast:
      return relay_broadcast(values, wait);
  }
  return {};
}

void fill_test_values(Operation, Rank own, WorldSize, std::span<float> values) {
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(own.value + test_value(i));
}

Status check_result(Operation operation, Rank own, WorldSize size, std::span<const float> values) {
  const auto n = static_cast<std::size_t>(size.value);
  const double sum_of_ranks = static_cast<double>(size.value) * (size.value - 1) / 2;
  for (std::size_t i = 0; i < values.size(); ++i) {
    // The part of an element: part r begins at values.size() * r / n.
    const auto owner = static_cast<std::size_t>(
        std::min<std::size_t>(n - 1, ((i + 1) * n - 1) / std::max<std::size_t>(1, values.size())));
    double expected = sum_of_ranks + static_cast<double>(n) * test_value(i);
    if (operation == Operation::reduce_scatter && owner != static_cast<std::size_t>(own.value)) continue;
    if (operation == Operation::all_gather) expected = static_cast<double>(owner) + test_value(i);
    if (operation == Operation::broadcast) expected = test_value(i);
    if (static_cast<double>(values[i]) != expected) {
      return corrupt("{}: element {} is {}, not {}", std::string(to_text(operation)), i,
                     static_cast<double>(values[i]), expected);
    }
  }
  return {};
}

}  // namespace stoker::netcheck

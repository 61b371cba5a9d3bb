#include "net/message.h"

#include <gtest/gtest.h>

namespace stoker::net {
namespace {

ControlMessage sample() {
  return ControlMessage{"hello",
                        {{"rank", "3"},
                         {"host",
                          "n\xC3\xB6"
                          "de\n"},
                         {"empty", ""}}};
}

TEST(ControlMessage, handles_any_split_of_the_stream) {
  const std::string frame = encode(sample()) + encode(ControlMessage{"beat", {}});
  for (std::size_t cut = 0; cut <= frame.size(); ++cut) {
    FrameParser parser;
    std::vector<ControlMessage> seen;
    for (std::string_view part :
         {std::string_view(frame).substr(0, cut), std::string_view(frame).substr(cut)}) {
      parser.feed(part);
      for (;;) {
        auto next = parser.next();
        ASSERT_TRUE(next.ok()) << next.status().to_string();
        if (!*next) break;
        seen.push_back(**next);
      }
    }
    ASSERT_EQ(seen, (std::vector<ControlMessage>{sample(), ControlMessage{"beat", {}}})) << "cut at " << cut;
  }
}

TEST(ControlMessage, refuses_an_unknown_client_at_its_first_byte) {
  FrameParser parser;
  parser.feed("GET / HTTP/1.1\r\n");
  EXPECT_EQ(parser.next().status().message(), "message: does not start like a stoker message");
}

TEST(ControlMessage, a_length_beyond_the_limit_is_refused_before_its_bytes_come) {
  FrameParser parser;
  parser.feed(std::string("STK1\xFF\xFF\xFF\x7F", 8));
  EXPECT_EQ(parser.next().status().message(), "message: 2147483647 bytes long (at most 262144)");
}

TEST(ControlMessage, every_flipped_or_missing_byte_is_an_error_or_another_message_never_a_crash) {
  const std::string frame = encode(sample());
  for (std::size_t i = 0; i < frame.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = frame;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      FrameParser parser;
      parser.feed(damaged);
      const auto next = parser.next();
      EXPECT_TRUE(next.ok() || next.status().code() == Code::corrupt);
    }
  }
  // A frame with inconsistent inner lengths.
  std::string short_body = frame;
  short_body[4] = static_cast<char>(short_body[4] - 1);
  FrameParser parser;
  parser.feed(short_body);
  EXPECT_EQ(parser.next().status().code(), Code::corrupt);
}

TEST(ControlMessage, fields_are_read_with_their_type) {
  ControlMessage message{"ended", {}};
  message.with("code", std::int64_t{7}).with("time", 1.5).with("phase", "backward");
  EXPECT_EQ(message.integer("code"), 7);
  EXPECT_EQ(message.number("time"), 1.5);
  EXPECT_EQ(message.text("phase"), "backward");
  EXPECT_EQ(message.integer("phase"), std::nullopt);
  EXPECT_EQ(message.text("nothing"), "");
}

}  // namespace
}  // namespace stoker::net

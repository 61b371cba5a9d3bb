#include "net/message_auth.h"

#include <gtest/gtest.h>

namespace stoker::net {
namespace {

const ControlMessage kHello{"hello", {{"rank", "1"}, {"host", "n1"}}};

TEST(MessageAuth, a_signed_message_is_verified_with_the_secret_and_does_not_contain_it) {
  const ControlMessage message = signed_message(kHello, "secret");
  EXPECT_TRUE(is_authentic(message, "secret"));
  EXPECT_EQ(message.text("rank"), "1");
  EXPECT_EQ(encode(message).find("secret"), std::string::npos);
}

TEST(MessageAuth, refuses_a_wrong_secret_and_a_missing_proof) {
  EXPECT_FALSE(is_authentic(signed_message(kHello, "secret"), "secreT"));
  EXPECT_FALSE(is_authentic(kHello, "secret"));
  EXPECT_FALSE(is_authentic(ControlMessage{"hello", {{"proof", ""}}}, ""));
}

TEST(MessageAuth, a_message_that_was_changed_on_its_way_is_refused) {
  for (const char* field : {"rank", "host", "nonce", "proof"}) {
    ControlMessage message = signed_message(kHello, "secret");
    message.with(field, "2");
    EXPECT_FALSE(is_authentic(message, "secret")) << field;
  }
  ControlMessage message = signed_message(kHello, "secret");
  message.kind = "stop";
  EXPECT_FALSE(is_authentic(message, "secret"));
  message = signed_message(kHello, "secret");
  message.with("more", "1");
  EXPECT_FALSE(is_authentic(message, "secret"));
}

TEST(MessageAuth, the_proof_is_the_documented_hmac) {
  // python3: hmac.new(b"secret", frame, "sha256") over the frame described in docs/formats/messages.md.
  ControlMessage message{"hello", {{"nonce", "n"}, {"rank", "1"}}};
  message.with("proof", "c1312827869c4b4c39bf76a8840a67dfdb87cd731be5ba34425916644fec67e9");
  EXPECT_TRUE(is_authentic(message, "secret"));
}

TEST(MessageAuth, every_message_has_a_unique_nonce) {
  EXPECT_NE(signed_message(kHello, "secret").text("nonce"), signed_message(kHello, "secret").text("nonce"));
}

}  // namespace
}  // namespace stoker::net

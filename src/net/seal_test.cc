#include "net/seal.h"

#include <gtest/gtest.h>

namespace stoker::net {
namespace {

const Message kHello{"hello", {{"rank", "1"}, {"host", "n1"}}};

TEST(Seal, a_sealed_message_is_known_by_its_secret_and_does_not_show_it) {
  const Message message = sealed(kHello, "secret");
  EXPECT_TRUE(is_sealed(message, "secret"));
  EXPECT_EQ(message.text("rank"), "1");
  EXPECT_EQ(encode(message).find("secret"), std::string::npos);
}

TEST(Seal, no_other_secret_fits_and_none_does_without_a_proof) {
  EXPECT_FALSE(is_sealed(sealed(kHello, "secret"), "secreT"));
  EXPECT_FALSE(is_sealed(kHello, "secret"));
  EXPECT_FALSE(is_sealed(Message{"hello", {{"proof", ""}}}, ""));
}

TEST(Seal, a_message_that_was_changed_on_its_way_is_refused) {
  for (const char* field : {"rank", "host", "nonce", "proof"}) {
    Message message = sealed(kHello, "secret");
    message.with(field, "2");
    EXPECT_FALSE(is_sealed(message, "secret")) << field;
  }
  Message message = sealed(kHello, "secret");
  message.kind = "stop";
  EXPECT_FALSE(is_sealed(message, "secret"));
  message = sealed(kHello, "secret");
  message.with("more", "1");
  EXPECT_FALSE(is_sealed(message, "secret"));
}

TEST(Seal, the_proof_is_the_hmac_of_the_page) {
  // python3: hmac.new(b"secret", frame, "sha256") over the frame that docs/rooms/net.md describes.
  Message message{"hello", {{"nonce", "n"}, {"rank", "1"}}};
  message.with("proof", "c1312827869c4b4c39bf76a8840a67dfdb87cd731be5ba34425916644fec67e9");
  EXPECT_TRUE(is_sealed(message, "secret"));
}

TEST(Seal, every_message_has_a_nonce_of_its_own) {
  EXPECT_NE(sealed(kHello, "secret").text("nonce"), sealed(kHello, "secret").text("nonce"));
}

}  // namespace
}  // namespace stoker::net

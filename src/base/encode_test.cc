#include "base/encode.h"

#include <gtest/gtest.h>

#include "stoker/text.h"

namespace stoker {
namespace {

// The test vectors of RFC 4648, section 10.
TEST(Encode, decoded_base64_is_the_same_bytes) {
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(decode_base64(base64(std::as_bytes(std::span(bytes)))), bytes);
    bytes += static_cast<char>(i * 7);
  }
  EXPECT_EQ(decode_base64("/+8="), "\xff\xef");
}

TEST(Encode, text_that_is_not_base64_is_refused) {
  for (const char* text :
       {"a", "abc", "ab=c", "====", "=abc", "a===", "ab c", "ab\n=", "ab-_", "abcd=", "\x80\x80\x80\x80"})
    EXPECT_FALSE(decode_base64(text)) << text;
}

TEST(Encode, base64) {
  const auto encoded = [](std::string_view text) { return base64(std::as_bytes(std::span(text))); };
  EXPECT_EQ(encoded(""), "");
  EXPECT_EQ(encoded("f"), "Zg==");
  EXPECT_EQ(encoded("fo"), "Zm8=");
  EXPECT_EQ(encoded("foo"), "Zm9v");
  EXPECT_EQ(encoded("foob"), "Zm9vYg==");
  EXPECT_EQ(encoded("fooba"), "Zm9vYmE=");
  EXPECT_EQ(encoded("foobar"), "Zm9vYmFy");
  EXPECT_EQ(encoded("\xFF\xFB\xF0"), "//vw");
}

// The limits of RFC 3629, section 4.
TEST(Encode, is_utf8) {
  for (const std::string_view good :
       {"", "plain", "gr\xC3\xBCn", "\xE0\xA0\x80", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"})
    EXPECT_TRUE(is_utf8(good)) << good;
  EXPECT_TRUE(is_utf8(std::string_view("\0", 1)));
  for (const std::string_view bad :
       {"\x80", "\xC0\x80", "\xC1\xBF", "a\xC3", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xE2\x82",
        "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF"})
    EXPECT_FALSE(is_utf8(bad)) << printable(bad);
}

TEST(Encode, html) {
  EXPECT_EQ(escape_html("a<b> & \"c\" 'd'"), "a&lt;b&gt; &amp; &quot;c&quot; &#39;d&#39;");
  EXPECT_EQ(escape_html("grün"), "grün");
}

}  // namespace
}  // namespace stoker

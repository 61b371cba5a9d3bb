#include "transfer/purge/uses.h"

#include <gmock/gmock.h>

namespace stoker::transfer {
namespace {

TEST(Mentions, finds_the_folder_something_in_it_and_a_folder_above_it) {
  const auto found = [](std::string_view text) {
    return mentions(text, "/scratch/ada/exp", "/scratch/ada/data/photos", "/scratch/ada");
  };
  for (const char* text : {"data: /scratch/ada/data/photos", "python x.py --data=/scratch/ada/data/photos/",
                           "a ../data/photos b", "{source: \"../data/photos/train-0.tar\"}",
                           "root=/scratch/ada/data", "cd ../data; ls"})
    EXPECT_TRUE(found(text)) << text;
  for (const char* text :
       {"data: /scratch/ada/data/photos2/x", "cd /scratch/ada", "cd /scratch", "photos", "..", ""}) {
    // The prefix of a longer name is also counted as a mention: it keeps more.
    const bool is_prefix = std::string_view(text).find("photos2") != std::string_view::npos;
    EXPECT_EQ(found(text), is_prefix) << text;
  }
}

}  // namespace
}  // namespace stoker::transfer

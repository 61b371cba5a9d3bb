#include "track/mlflow/mlflow_names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace stoker::track {
namespace {

TEST(MlflowKey, keeps_names_that_every_server_accepts) {
  for (const char* name :
       {"loss", "val/top-1 acc", "system/node0/net.eth0.sent_bytes_per_s", "a_b.c", "Genauigkeit ä"})
    EXPECT_EQ(mlflow_key(name), name);
}

TEST(MlflowKey, replaces_what_a_server_refuses) {
  EXPECT_EQ(mlflow_key("acc, %"), "acc_ _");
  EXPECT_EQ(mlflow_key("a:b"), "a_b");
  EXPECT_EQ(mlflow_key("/loss"), "_loss");
  EXPECT_EQ(mlflow_key("a//b"), "a__b");
  EXPECT_EQ(mlflow_key("../a"), ".._a");
  EXPECT_EQ(mlflow_key("a/./b"), "a_._b");
  EXPECT_EQ(mlflow_key("a/"), "a_");
  EXPECT_EQ(mlflow_key(".."), "_..");
  EXPECT_EQ(mlflow_key("."), "_.");
  EXPECT_LE(mlflow_key(std::string(256, 'x')).size(), 250u);
  EXPECT_NE(mlflow_key(std::string(256, 'x')), mlflow_key(std::string(255, 'x')));
}

TEST(MlflowKeys, gives_different_names_different_keys_and_reports_each_once) {
  std::vector<std::string> notes;
  MlflowKeys keys([&](const std::string& line) { notes.push_back(line); });
  const std::string first = keys.key_of("a%");
  const std::string second = keys.key_of("a#");
  EXPECT_EQ(first, "a_");
  EXPECT_NE(first, second);
  EXPECT_EQ(keys.key_of("a%"), first);
  EXPECT_EQ(keys.key_of("a#"), second);
  EXPECT_EQ(keys.key_of("loss"), "loss");
  EXPECT_EQ(notes.size(), 2u);
}

}  // namespace
}  // namespace stoker::track

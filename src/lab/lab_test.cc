#include "lab/lab.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"

namespace stoker::lab {
namespace {

using ::testing::ElementsAre;

TEST(LabName, becomes_part_of_the_names_of_links) {
  for (const char* name : {"a", "lab1", "l1234567890"}) EXPECT_TRUE(check_name(name).ok()) << name;
  for (const char* name : {"", "1lab", "Lab", "my-lab", "l12345678901", "a b", "../x"}) {
    EXPECT_EQ(check_name(name).code(), Code::invalid) << name;
  }
  EXPECT_EQ(check_name("a\nb").message(),
            "lab: name 'a\\x0ab': must be a lower-case letter, then up to 10 letters and digits");
}

TEST(LabFile, round_trips) {
  const TempDirectory folder;
  Lab lab;
  lab.folder = folder / "lab7";
  ASSERT_TRUE(make_directory(lab.folder).ok());
  lab.name = "lab7";
  lab.phase = LabPhase::up;
  lab.mode = LabMode::namespaces;
  lab.cpus = 2;
  lab.controller_port = 65535;
  lab.started = 1763745600.25;
  lab.guardian = 4194303;
  lab.has_accounting = true;
  lab.nodes = {LabNode{
      .name = "n1", .address = "10.77.1.1", .port = 6818, .link = "lab7-n1", .core = -1, .holder = 12}};
  ASSERT_TRUE(save(lab).ok());

  const auto text = read_file(lab.folder / "lab.json");
  ASSERT_TRUE(text.ok());
  const auto read = parse(*text, lab.folder);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->name, "lab7");
  EXPECT_EQ(read->phase, LabPhase::up);
  EXPECT_EQ(read->mode, LabMode::namespaces);
  EXPECT_EQ(read->cpus, 2);
  EXPECT_EQ(read->controller_port, 65535);
  EXPECT_EQ(read->started, 1763745600.25);
  EXPECT_EQ(read->guardian, 4194303);
  EXPECT_TRUE(read->has_accounting);
  ASSERT_EQ(read->nodes.size(), 1);
  EXPECT_EQ(read->nodes[0].link, "lab7-n1");
  EXPECT_EQ(read->nodes[0].core, -1);
  EXPECT_EQ(read->nodes[0].holder, 12);
}

TEST(LabFile, ignores_fields_of_wrong_type_or_range) {
  const auto lab = parse(R"({"cpus": "2", "gpus": 1e300, "controller_port": 65536, "database_port": -1,
                             "guardian": 18446744073709551615, "started": true, "nodes": [1, {"name": 7}, null]})",
                         "/labs/x");
  ASSERT_TRUE(lab.ok());
  EXPECT_EQ(lab->name, "x");
  EXPECT_EQ(lab->phase, LabPhase::starting);
  EXPECT_EQ(lab->cpus, 0);
  EXPECT_EQ(lab->gpus, 0);
  EXPECT_EQ(lab->controller_port, 0);
  EXPECT_EQ(lab->database_port, 0);
  EXPECT_EQ(lab->guardian, 0);
  EXPECT_EQ(lab->started, 0);
  ASSERT_EQ(lab->nodes.size(), 1);
  EXPECT_EQ(lab->nodes[0].name, "");
}

TEST(LabFile, non_object_is_corrupt) {
  for (const char* text : {"", "[]", "{", "1", "{} {}"}) {
    const auto lab = parse(text, "/labs/x");
    ASSERT_FALSE(lab.ok()) << text;
    EXPECT_EQ(lab.error().code(), Code::corrupt);
    EXPECT_EQ(lab.error().message(), "/labs/x/lab.json: not a JSON object");
  }
}

TEST(NodeCommand, enters_the_namespaces_of_its_node_only_where_it_has_some) {
  Lab lab;
  lab.folder = "/labs/x";
  LabNode node{.name = "n1"};
  node.holder = 77;
  lab.mode = LabMode::namespaces;
  EXPECT_THAT(node_command(lab, node, {"hostname"}, "/home").argv,
              ElementsAre("nsenter", "--target", "77", "--mount", "--uts", "--net", "--wdns=/home", "--",
                          "hostname"));
  lab.mode = LabMode::processes;
  const Command here = node_command(lab, node, {"hostname"}, "/home");
  EXPECT_THAT(here.argv, ElementsAre("hostname"));
  EXPECT_EQ(here.directory, "/home");
}

}  // namespace
}  // namespace stoker::lab

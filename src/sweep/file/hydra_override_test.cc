#include "sweep/file/hydra_override.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "sweep/space/space_json.h"

namespace stoker::sweep {
namespace {

std::string override_json(std::string_view text) {
  const auto parameter = parse_hydra_override(text);
  return parameter.ok() ? json_text(json_of(*parameter)) : parameter.status().to_string();
}

std::string json_range(std::string_view name, std::string_view rest) {
  return format(R"({{"name":"{}",{}}})", name, rest);
}

// As hydra-core 1.3 reads them: OverridesParser, then BasicSweeper's values of a range.
TEST(HydraOverride, sweeps_are_read_as_hydra_reads_them) {
  EXPECT_EQ(override_json("opt=choice(sgd, adamw)"), json_range("opt", R"("values":["sgd","adamw"])"));
  EXPECT_EQ(override_json("a.b=1,2.5,true,x y,'3',\"it's\""),
            json_range("a.b", R"("values":[1,2.5,true,"x y","3","it's"])"));
  EXPECT_EQ(override_json("lr=interval(1e-4,1)"),
            json_range("lr", R"("min":0.0001,"max":1.0,"integer":false,"log":false,"step":0.0)"));
  EXPECT_EQ(override_json("+lr=tag(log, interval(start=1e-4, end=1))"),
            json_range("lr", R"("min":0.0001,"max":1.0,"integer":false,"log":true,"step":0.0)"));
  EXPECT_EQ(override_json("n=range(1,10,2)"),
            json_range("n", R"("min":1.0,"max":9.0,"integer":true,"log":false,"step":2.0)"));
  EXPECT_EQ(override_json("n=range(4)"),
            json_range("n", R"("min":0.0,"max":3.0,"integer":true,"log":false,"step":0.0)"));
  EXPECT_EQ(override_json("n=range(0,1,step=0.3)"),
            json_range("n", R"("min":0.0,"max":0.9,"integer":false,"log":false,"step":0.3)"));
  EXPECT_EQ(override_json("n=int(interval(1,8))"),
            json_range("n", R"("min":1.0,"max":8.0,"integer":true,"log":false,"step":0.0)"));
  EXPECT_EQ(override_json("n=str(choice(1,2.0,true))"), json_range("n", R"("values":["1","2","true"])"));
  EXPECT_EQ(override_json("n=float(choice(1,'2'))"), json_range("n", R"("values":[1.0,2.0])"));
  EXPECT_EQ(override_json("n=7"), json_range("n", R"("values":[7])"));
}

TEST(HydraOverride, errors_have_a_position) {
  EXPECT_EQ(override_json("lr"), "lr: '=' is missing at column 3");
  EXPECT_EQ(override_json("=1"), "=1: a name of a parameter is missing at column 1");
  EXPECT_EQ(override_json("lr="), "lr=: a value is missing at column 4");
  EXPECT_EQ(override_json("~lr=1"), "~lr=1: a deletion is no parameter at column 1");
  EXPECT_EQ(override_json("lr=interval(1e-4,1"), "lr=interval(1e-4,1: ')' is missing at column 19");
  EXPECT_EQ(override_json("lr=interval(1,x)"), "lr=interval(1,x): a number is missing at column 4");
  EXPECT_EQ(override_json("lr=interval(1)"), "lr=interval(1): a number is missing at column 4");
  EXPECT_EQ(override_json("lr=range(1,2,3,4)"), "lr=range(1,2,3,4): over 3 numbers at column 4");
  EXPECT_EQ(override_json("lr=range(3,1)"), "lr=range(3,1): the range is empty at column 14");
  EXPECT_EQ(override_json("lr=intervall(1,2)"),
            "lr=intervall(1,2): 'intervall' is no function; did you mean 'interval'? at column 4");
  EXPECT_EQ(override_json("lr=glob(*)"),
            "lr=glob(*): glob needs Hydra's config groups (choice(a, b) has the names) at column 4");
  EXPECT_EQ(override_json("lr=shuffle(range(3))"),
            "lr=shuffle(range(3)): shuffle: the sampler decides the order at column 4");
  EXPECT_EQ(override_json("lr=tag(slow, range(3))"),
            "lr=tag(slow, range(3)): tag 'slow' has no meaning here (log has) at column 4");
  EXPECT_EQ(override_json("lr=[1,2]"),
            "lr=[1,2]: a list or dictionary is no value of a parameter at column 4");
  EXPECT_EQ(override_json("lr='a"), "lr='a: a quote is not closed at column 4");
  EXPECT_EQ(override_json("lr=choice(1,2)x"), "lr=choice(1,2)x: 'x' is unexpected at column 15");
  EXPECT_EQ(override_json("lr=choice(range(3),1)"),
            "lr=choice(range(3),1): a range is beside other values at column 4");
  EXPECT_EQ(override_json("lr=int(choice(a))"), "lr=int(choice(a)): 'a' is no int at column 4");
  EXPECT_THAT(override_json("lr=" + std::string(100, ' ') + "int(" + std::string(3, '(')),
              testing::HasSubstr("column"));
  std::string deep = "lr=";
  for (int i = 0; i < 40; ++i) deep += "int(";
  EXPECT_THAT(override_json(deep), testing::HasSubstr("too deep"));
}

}  // namespace
}  // namespace stoker::sweep

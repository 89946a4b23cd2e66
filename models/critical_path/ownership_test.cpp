// SPDX-License-Identifier: Apache-2.0
#include "models/critical_path/ownership.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

namespace kvsim::model {
namespace {

using namespace literals;

TEST(Ownership, PartsAddUpToTheTotal) {
  Ownership path;
  path.add(Owner::weights, 30_ns);
  path.add(Owner::refresh, 5_ns);
  path.add(Owner::weights, 10_ns);
  EXPECT_EQ(path.part(Owner::weights), 40_ns);
  EXPECT_EQ(path.part(Owner::queue), 0_ns);
  EXPECT_EQ(path.total(), 45_ns);
}

TEST(Ownership, SumAndDifferenceArePartByPart) {
  Ownership a;
  a.add(Owner::kv_read, 7_ns);
  a.add(Owner::compute, 1_ns);
  Ownership sum = a;
  sum += a;
  EXPECT_EQ(sum.part(Owner::kv_read), 14_ns);
  EXPECT_EQ(sum - a, a);
  EXPECT_EQ((a - a).total(), 0_ns);
}

TEST(Ownership, DataBelongToWhatTheyAreFor) {
  using trace::Access;
  using trace::Kind;
  EXPECT_EQ(data_owner(Kind::weights, Access::read), Owner::weights);
  EXPECT_EQ(data_owner(Kind::kv, Access::read), Owner::kv_read);
  EXPECT_EQ(data_owner(Kind::kv, Access::write), Owner::kv_write);
  EXPECT_EQ(data_owner(Kind::scratch, Access::write), Owner::other_data);
}

TEST(Ownership, EveryOwnerHasANameOfItsOwn) {
  std::set<std::string> names;
  for (int owner = 0; owner < kOwners; ++owner) {
    names.emplace(to_string(static_cast<Owner>(owner)));
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(kOwners));
  EXPECT_EQ(names.count(""), 0U);
}

}  // namespace
}  // namespace kvsim::model

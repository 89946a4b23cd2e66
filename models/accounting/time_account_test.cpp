// SPDX-License-Identifier: Apache-2.0
#include "models/accounting/time_account.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

namespace kvsim::model {
namespace {

using namespace literals;

TEST(TimeAccount, PartsAddUpToTheTotal) {
  TimeAccount account;
  account.add(Owner::weights, 30_ns);
  account.add(Owner::refresh, 5_ns);
  account.add(Owner::weights, 10_ns);
  EXPECT_EQ(account.part(Owner::weights), 40_ns);
  EXPECT_EQ(account.part(Owner::queue), 0_ns);
  EXPECT_EQ(account.total(), 45_ns);
}

TEST(TimeAccount, SumAndDifferenceArePartByPart) {
  TimeAccount a;
  a.add(Owner::kv_read, 7_ns);
  a.add(Owner::compute, 1_ns);
  TimeAccount sum = a;
  sum += a;
  EXPECT_EQ(sum.part(Owner::kv_read), 14_ns);
  EXPECT_EQ(sum - a, a);
  EXPECT_EQ((a - a).total(), 0_ns);
}

TEST(TimeAccount, DataBelongToWhatTheyAreFor) {
  using trace::Access;
  using trace::Kind;
  EXPECT_EQ(data_owner(Kind::weights, Access::read), Owner::weights);
  EXPECT_EQ(data_owner(Kind::kv, Access::read), Owner::kv_read);
  EXPECT_EQ(data_owner(Kind::kv, Access::write), Owner::kv_write);
  EXPECT_EQ(data_owner(Kind::scratch, Access::write), Owner::other_data);
}

TEST(TimeAccount, EveryOwnerHasANameOfItsOwn) {
  std::set<std::string> names;
  for (int owner = 0; owner < kOwners; ++owner) {
    names.emplace(to_string(static_cast<Owner>(owner)));
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(kOwners));
  EXPECT_EQ(names.count(""), 0U);
}

TimeAccount account_of(Owner owner, Picoseconds time) {
  TimeAccount account;
  account.add(owner, time);
  return account;
}

TEST(Settle, DataBeatsOwnTheirTimeAndComputeTheRest) {
  const BusTime bus{.beats = account_of(Owner::weights, 240_ns), .gaps = {}, .channels = 4};
  const TimeAccount account = settle(100_ns, bus, {});
  EXPECT_EQ(account.part(Owner::weights), 60_ns);
  EXPECT_EQ(account.part(Owner::compute), 40_ns);
  EXPECT_EQ(account.total(), 100_ns);
}

TEST(Settle, ABoundBusTellsWhatItsGapsWere) {
  const BusTime bus{
      .beats = account_of(Owner::weights, 280_ns), .gaps = account_of(Owner::refresh, 80_ns), .channels = 4};
  const EngineTime engine{.stalls = {}, .behind_data = 90_ns};
  const TimeAccount account = settle(100_ns, bus, engine);
  EXPECT_EQ(account.part(Owner::weights), 70_ns);
  EXPECT_EQ(account.part(Owner::refresh), 20_ns);
  EXPECT_EQ(account.part(Owner::compute), 10_ns);
}

TEST(Settle, AnEngineBoundOperatorsStallsTellWhatHeldIt) {
  const BusTime bus{
      .beats = account_of(Owner::kv_read, 40_ns), .gaps = account_of(Owner::row, 200_ns), .channels = 4};
  const EngineTime engine{.stalls = account_of(Owner::latency, 50_ns), .behind_data = {}};
  const TimeAccount account = settle(100_ns, bus, engine);
  EXPECT_EQ(account.part(Owner::kv_read), 10_ns);
  EXPECT_EQ(account.part(Owner::row), 0_ns);
  EXPECT_EQ(account.part(Owner::latency), 50_ns);
  EXPECT_EQ(account.part(Owner::compute), 40_ns);
}

TEST(Settle, PartsNeverExceedTheElapsedTime) {
  const BusTime bus{
      .beats = account_of(Owner::weights, 900_ns), .gaps = account_of(Owner::row, 900_ns), .channels = 2};
  const EngineTime engine{.stalls = account_of(Owner::refresh, 700_ns), .behind_data = 300_ns};
  for (const Picoseconds elapsed : {0_ns, 1_ns, 449_ns, 450_ns, 451_ns, 777_ns}) {
    const TimeAccount account = settle(elapsed, bus, engine);
    EXPECT_EQ(account.total(), elapsed);
    for (int owner = 0; owner < kOwners; ++owner) {
      EXPECT_GE(account.part(static_cast<Owner>(owner)), 0_ns);
    }
  }
}

}  // namespace
}  // namespace kvsim::model

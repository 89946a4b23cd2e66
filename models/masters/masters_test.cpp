// SPDX-License-Identifier: Apache-2.0
#include "models/masters/masters.h"

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "models/masters/storage_dma.h"
#include "models/testing/soc.h"
#include "models/testing/test_device.h"

namespace kvsim::model {
namespace {

using namespace kvsim::literals;
using testing::Soc;

config::MasterUse screen() {
  config::MasterUse use;
  use.master.name = "screen";
  use.master.scan = config::ScanSpec{.width = 1920,
                                     .height = 1080,
                                     .bytes_per_pixel = 4,
                                     .rate = Hertz(60),
                                     .active = 0.96,
                                     .buffer_lines = 4};
  return use;
}

config::MasterUse radio() {
  config::MasterUse use;
  use.master.name = "radio";
  use.master.radio = config::RadioSpec{.rate = BytesPerSecond(108.5e6),
                                       .air = BytesPerSecond(300e6),
                                       .aggregate = Bytes(96'000),
                                       .packet = Bytes(1536),
                                       .bus = BytesPerSecond(800e6),
                                       .core = 3,
                                       .interrupt = 5_us,
                                       .per_packet = 1_us,
                                       .ring = 4_MiB};
  return use;
}

/// Takes all it can get.
config::MasterUse hog() {
  config::MasterUse use;
  use.master.name = "hog";
  use.master.burst = config::BurstSpec{.bytes = 16_MiB, .period = 100_us};
  use.master.lines = 64;
  return use;
}

config::DeviceSpec with(std::vector<config::MasterUse> masters) {
  config::DeviceSpec device = testing::device();
  device.masters = std::move(masters);
  return device;
}

/// Four cores read `bytes` beside the masters; what became of these, and how long it took.
struct Outcome {
  Picoseconds time;
  std::vector<MasterFigures> masters;
  MemoryCounters memory;
  TimeAccount account;
};

struct Case {
  config::DeviceSpec device;
  Bytes bytes;
  std::int64_t threads = 4;
  Granularity granularity = Granularity::burst;
};

/// SystemC starts once in a process, so all cases of a test run side by side, each on a device of its own.
std::vector<Outcome> play(const std::vector<Case>& cases) {
  std::vector<std::unique_ptr<Soc>> socs;
  std::vector<Outcome> outcomes(cases.size());
  std::vector<std::function<void()>> programs;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    const Case& c = cases[i];
    Soc& soc = *socs.emplace_back(
        std::make_unique<Soc>(("soc" + std::to_string(i)).c_str(), c.device, c.granularity));
    programs.emplace_back([&soc, &c, &outcome = outcomes[i]] {
      soc.run(testing::split(0, c.bytes, c.threads));
      outcome.time = now();
      outcome.memory = soc.counters();
      outcome.account = soc.account();
      for (const auto& master : soc.masters().all()) {
        outcome.masters.push_back(master->figures());
      }
      soc.masters().stop();
    });
  }
  testing::simulate(std::move(programs));
  for (const auto& soc : socs) {
    EXPECT_TRUE(soc->broken_rules().empty());
  }
  return outcomes;
}

TEST(Masters, AScreenKeepsItsDeadlinesWhereThereIsBandwidthToSpare) {
  const Outcome outcome = play({{with({screen()}), 64_MiB, 1, Granularity::train}}).front();
  const MasterFigures& figures = outcome.masters[0];
  EXPECT_GT(figures.transfers, 200);
  EXPECT_EQ(figures.missed, 0);
  EXPECT_EQ(figures.lost, Bytes());
  EXPECT_EQ(figures.read, Bytes(1920 * 4) * figures.transfers);
  // All lines whose time had come, but for those under way.
  const std::int64_t asked = outcome.time / config::line_time(*screen().master.scan).count() > Picoseconds()
                                 ? outcome.time.count() / config::line_time(*screen().master.scan).count()
                                 : 0;
  EXPECT_NEAR(static_cast<double>(figures.transfers), static_cast<double>(asked), 5);
}

TEST(Masters, MemoryMovesWhatCoresAndMastersAskFor) {
  const Outcome outcome = play({{with({screen()}), 64_MiB}}).front();
  const double lines = (outcome.memory.read - 64_MiB).as_double() / (1920 * 4);
  EXPECT_NEAR(lines, static_cast<double>(outcome.masters[0].transfers), 5);
  EXPECT_GT(outcome.account.part(Owner::masters), Picoseconds());
  EXPECT_EQ(outcome.account.total(), outcome.time);
}

TEST(Masters, WhatARadioHearsIsWrittenOnceAndCopiedOnce) {
  const Outcome outcome = play({{with({radio()}), 256_MiB, 1, Granularity::train}}).front();
  const MasterFigures& figures = outcome.masters[0];
  EXPECT_GT(figures.transfers, 10);
  EXPECT_EQ(figures.written, Bytes(96'000) * figures.transfers);
  EXPECT_EQ(figures.read, Bytes());
  EXPECT_LE(figures.written - figures.copied, Bytes(96'000) * 2);
  // DMA writes and the copy reads and writes: packets are whole lines here.
  EXPECT_NEAR((outcome.memory.read - 256_MiB).as_double(), figures.copied.as_double(), 96'000);
  EXPECT_NEAR(outcome.memory.written.as_double(), (figures.written + figures.copied).as_double(), 2 * 96'000);
  EXPECT_EQ(figures.lost, Bytes());
}

TEST(Masters, ALimiterHoldsItsBudget) {
  config::MasterUse use = hog();
  use.qos = config::QosMode::limiter;
  use.bandwidth = BytesPerSecond(2e9);
  use.window = 10_us;
  use.master.burst->bytes = 64_KiB;
  use.master.burst->period = 10_us;  // 6.5 GB/s asked for
  for (const Outcome& outcome : play({{with({use}), 32_MiB, 1}, {with({use}), 64_MiB, 4}})) {
    EXPECT_NEAR((outcome.masters[0].read / outcome.time).count(), 2e9, 0.02 * 2e9);
    EXPECT_GT(outcome.masters[0].lost, Bytes());  // what did not fit into the budget
  }
}

TEST(Masters, ARegulatorGetsWhatItIsPromisedAndNoPriorityBeyond) {
  config::MasterUse plain = hog();
  config::MasterUse urgent = hog();
  urgent.priority = 3;
  config::MasterUse some = urgent;
  some.qos = config::QosMode::regulator;
  some.window = 1_us;
  some.bandwidth = BytesPerSecond(1e9);
  config::MasterUse all = some;
  all.bandwidth = BytesPerSecond(34e9);
  std::vector<double> got;
  for (const Outcome& outcome : play({{with({plain}), 32_MiB},
                                      {with({urgent}), 32_MiB},
                                      {with({some}), 32_MiB},
                                      {with({all}), 32_MiB}})) {
    got.push_back((outcome.masters[0].read / outcome.time).count());
  }
  EXPECT_GT(got[1], 1.1 * got[0]);
  EXPECT_LT(got[2], 1.1 * got[0]);
  EXPECT_NEAR(got[3], got[1], 0.05 * got[1]);
}

TEST(Masters, WithoutRegulationTheUrgentStarveTheRest) {
  config::MasterUse urgent = hog();
  urgent.priority = 3;
  urgent.master.lines = 256;
  const auto outcomes = play({{with({}), 32_MiB}, {with({urgent}), 32_MiB}});
  EXPECT_GT(outcomes[1].time.as_double(), 2.5 * outcomes[0].time.as_double());
}

TEST(Masters, ALoadTakesItsShareOfACore) {
  config::MasterUse use;
  use.master.load =
      config::CpuLoadSpec{.core = 0, .share = 0.5, .slice = 100_us, .traffic = BytesPerSecond(0)};
  config::MasterUse elsewhere = use;
  elsewhere.master.load->core = 1;  // where no thread is
  const auto outcomes =
      play({{with({}), 64_MiB, 1}, {with({use}), 64_MiB, 1}, {with({elsewhere}), 64_MiB, 1}});
  EXPECT_NEAR(outcomes[1].time.as_double(), 2 * outcomes[0].time.as_double(),
              0.05 * outcomes[0].time.as_double());
  EXPECT_EQ(outcomes[1].memory.read, 64_MiB);
  EXPECT_EQ(outcomes[2].time, outcomes[0].time);
}

TEST(Masters, ChannelsOfOneEngineTakeTurns) {
  config::MasterUse first = hog();
  first.master.engine = "dma0";
  const auto outcomes = play({{with({first, first}), 64_MiB, 1, Granularity::train},
                              {with({hog()}), 64_MiB, 1, Granularity::train}});
  const Outcome& outcome = outcomes[0];
  const Outcome& alone = outcomes[1];
  const double a = outcome.masters[0].read.as_double();
  const double b = outcome.masters[1].read.as_double();
  EXPECT_NEAR(a, b, 0.35 * (a + b));  // bursts of 16 MiB
  // The two together get what one alone would: the engine's window is one.
  EXPECT_NEAR((outcome.memory.read - 64_MiB).as_double() / seconds(outcome.time),
              (alone.memory.read - 64_MiB).as_double() / seconds(alone.time),
              0.1 * (alone.memory.read - 64_MiB).as_double() / seconds(alone.time));
}

TEST(Masters, OneEngineMakesASensorLateWhereTwoDoNot) {
  config::MasterUse sensor = screen();
  sensor.master.scan->access = config::MasterAccess::write;
  sensor.master.scan->buffer_lines = 1;
  config::MasterUse copy = hog();
  copy.master.lines = sensor.master.lines = 4;
  const config::DeviceSpec apart = with({sensor, copy});
  sensor.master.engine = copy.master.engine = "dma0";
  const config::DeviceSpec shared = with({sensor, copy});
  sensor.priority = 1;  // among the engine's channels too
  const auto outcomes = play({{apart, 32_MiB, 1}, {shared, 32_MiB, 1}, {with({sensor, copy}), 32_MiB, 1}});
  EXPECT_EQ(outcomes[0].masters[0].missed, 0);
  EXPECT_LE(outcomes[2].masters[0].missed, outcomes[1].masters[0].missed);
  EXPECT_GT(outcomes[1].masters[0].latency.quantile(0.5), outcomes[0].masters[0].latency.quantile(0.5));
}

TEST(Masters, TrainsMoveTheSame) {
  const config::DeviceSpec device = with({screen(), radio()});
  const auto outcomes =
      play({{device, 64_MiB, 4, Granularity::burst}, {device, 64_MiB, 4, Granularity::train}});
  const Outcome& exact = outcomes[0];
  const Outcome& train = outcomes[1];
  EXPECT_NEAR(train.time.as_double(), exact.time.as_double(), 0.05 * exact.time.as_double());
  EXPECT_NEAR(static_cast<double>(train.masters[0].transfers),
              static_cast<double>(exact.masters[0].transfers),
              0.05 * static_cast<double>(exact.masters[0].transfers) + 3);
  EXPECT_EQ(train.masters[0].missed, 0);
}

TEST(Masters, BuffersLieAtTheEndOfMemoryAndDoNotOverlap) {
  const config::DeviceSpec device = with({screen(), radio(), hog()});
  Soc soc("soc", device, Granularity::burst);
  trace::Address end = static_cast<trace::Address>(config::dram_capacity(device).count());
  for (const trace::Alloc& buffer : soc.masters().buffers()) {
    EXPECT_LE(buffer.address + static_cast<trace::Address>(buffer.bytes.count()), end);
    end = buffer.address;
  }
  EXPECT_EQ(soc.masters().buffers()[0].bytes, Bytes(1920LL * 1080 * 4 * 2));
}

TEST(Masters, StorageWritesAtItsRateUntilItIsStopped) {
  const config::DeviceSpec device = with({});
  MemorySystem memory("memory", device, Granularity::burst);
  Interconnect fabric("fabric");
  StorageDma dma("dma", memory.path());
  dma.engine().socket.bind(fabric.masters);
  fabric.memory.bind(memory.socket);
  Bytes written, at_the_end;
  testing::simulate([&] {
    dma.set_rate(BytesPerSecond(2e9), 1 << 20, 1_MiB);
    sc_core::wait(to_sc_time(2_ms));
    written = memory.path().counters().written;
    dma.stop();
    sc_core::wait(to_sc_time(100_us));
    at_the_end = memory.path().counters().written;
    sc_core::wait(to_sc_time(1_ms));
    EXPECT_EQ(memory.path().counters().written, at_the_end);
  });
  EXPECT_NEAR(written.as_double(), 4e6, 0.02 * 4e6);
}

}  // namespace
}  // namespace kvsim::model

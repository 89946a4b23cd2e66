// SPDX-License-Identifier: Apache-2.0
// `kvsim storage bench` as a user meets it.
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "tests/support/process.h"

namespace kvsim::testing {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

struct StorageBench : ::testing::Test {
  static Outcome bench(std::vector<std::string> options) {
    std::vector<std::string> arguments = {"storage", "bench"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    return kvsim(arguments);
  }
  static json result(std::vector<std::string> options) {
    options.insert(options.end(), {"--format", "json"});
    const Outcome outcome = bench(std::move(options));
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    EXPECT_EQ(outcome.err, "");
    return json::parse(outcome.out);
  }

  TemporaryFolder folder;
};

TEST_F(StorageBench, SpeaksAsFioDoes) {
  const json whole = result({"--part", "emmc_foresee_sld64g", "--rw", "randread", "--bs", "4K", "--iodepth",
                             "4", "--size", "64M", "--runtime", "1s"});
  ASSERT_EQ(whole["jobs"].size(), 1U);
  const json& job = whole["jobs"][0];
  EXPECT_EQ(job["jobname"], "randread");
  EXPECT_EQ(job["error"], 0);
  EXPECT_EQ(job["job options"]["bs"], "4096");
  const json& read = job["read"];
  const auto ios = read["total_ios"].get<std::int64_t>();
  EXPECT_GT(ios, 1000);
  EXPECT_EQ(read["io_bytes"], ios * 4096);
  EXPECT_EQ(read["clat_ns"]["N"], ios);
  EXPECT_NEAR(read["iops"].get<double>() * 4096, read["bw_bytes"].get<double>(), 1);
  EXPECT_NEAR(read["runtime"].get<double>(), 1000, 5);
  for (const char* figure : {"min", "max", "mean", "stddev"}) {
    EXPECT_TRUE(read["clat_ns"][figure].is_number()) << figure;
  }
  const json& percentiles = read["clat_ns"]["percentile"];
  double before = 0;
  for (const char* key : {"1.000000", "50.000000", "99.000000", "99.900000", "99.990000"}) {
    ASSERT_TRUE(percentiles.contains(key)) << key;
    EXPECT_GE(percentiles[key].get<double>(), before);
    before = percentiles[key];
  }
  EXPECT_LE(before, read["clat_ns"]["max"].get<double>());
  EXPECT_NEAR(read["slat_ns"]["mean"].get<double>() + read["clat_ns"]["mean"].get<double>(),
              read["lat_ns"]["mean"].get<double>(), 2);
  EXPECT_EQ(job["write"]["total_ios"], 0);
  EXPECT_EQ(job["device"]["status"], "ok");
}

TEST_F(StorageBench, RunsAllFourPatternsAndTellsWear) {
  const json whole = result({"--part", "ufs_4_phone", "--size", "32M"});
  ASSERT_EQ(whole["jobs"].size(), 4U);
  const std::vector<std::string> names = {"read", "write", "randread", "randwrite"};
  for (std::size_t i = 0; i < names.size(); ++i) {
    EXPECT_EQ(whole["jobs"][i]["jobname"], names[i]);
  }
  EXPECT_TRUE(whole["jobs"][0]["device"]["days_to_endurance"].is_null());
  EXPECT_GT(whole["jobs"][1]["device"]["days_to_endurance"].get<double>(), 0);
  EXPECT_GE(whole["jobs"][3]["device"]["waf"].get<double>(), 0.9);
  const Outcome text = bench({"--part", "ufs_4_phone", "--size", "32M"});
  EXPECT_THAT(text.out, HasSubstr("randwrite: bs 4 KiB, depth 1 x 1, size 32 MiB"));
  EXPECT_THAT(text.out, HasSubstr("write amplification"));
}

TEST_F(StorageBench, TheSameCommandGivesTheSameBytes) {
  const std::vector<std::string> command = {
      "--part", "nvme_sm2263xt_1tb", "--rw",  "randread", "--iodepth", "8", "--size",
      "1G",     "--runtime",         "100ms", "--format", "json"};
  EXPECT_EQ(bench(command).out, bench(command).out);
}

TEST_F(StorageBench, SizesMayBeWrittenAsFioOrAsKvsimDoes) {
  const auto ios = [](const std::string& block, const std::string& size) {
    return result({"--part", "emmc_foresee_sld64g", "--rw", "read", "--bs", block, "--size",
                   size})["jobs"][0]["read"]["total_ios"]
        .get<int>();
  };
  EXPECT_EQ(ios("64K", "8M"), 128);
  EXPECT_EQ(ios("64 KiB", "8 MiB"), 128);
  EXPECT_EQ(ios("65536", "8388608"), 128);
  EXPECT_EQ(ios("1m", "8m"), 8);
}

TEST_F(StorageBench, AFullDeviceIsAResultWithItsPlace) {
  const json job = result({"--part", "spi_nand_w25n01gv", "--rw", "write", "--bs", "1M", "--size", "200M",
                           "--runtime", "1000s"})["jobs"][0];
  EXPECT_EQ(job["error"], 28);
  EXPECT_EQ(job["device"]["status"], "device full");
  EXPECT_EQ(job["device"]["place"], 120 << 20);
  EXPECT_EQ(job["write"]["io_bytes"], 120 << 20);
}

TEST_F(StorageBench, AReadOnlyDeviceIsReadAndNotWritten) {
  const std::string part = folder.file("rom.yaml", "extends: emmc_foresee_sld64g\nread_only: true\n");
  const json job = result({"--part", part, "--rw", "randwrite"})["jobs"][0];
  EXPECT_EQ(job["error"], 30);
  EXPECT_EQ(job["device"]["status"], "read-only");
  EXPECT_EQ(job["write"]["total_ios"], 0);
  EXPECT_EQ(result({"--part", part, "--size", "8M"})["jobs"].size(), 2U) << "the reads";
}

TEST_F(StorageBench, HeatSlowsItDown) {
  const auto rate = [](const std::string& temperature) {
    return result({"--part", "ufs_4_phone", "--rw", "randread", "--bs", "4M", "--iodepth", "4", "--size",
                   "1G", "--temperature", temperature})["jobs"][0]["read"]["bw_bytes"]
        .get<double>();
  };
  EXPECT_NEAR(rate("40 C") / rate("80 C"), 1.5, 0.05);
}

TEST_F(StorageBench, BadInputIsRefused) {
  struct Bad {
    std::vector<std::string> options;
    std::string words;
  };
  const std::string part = "emmc_foresee_sld64g";
  const Bad bad[] = {
      {{}, "give the part with --part; 'kvsim list storage' has their ids"},
      {{"--part", "emmc_foresee"}, "unknown storage part 'emmc_foresee'"},
      {{"--part", part, "--rw", "trim"}, "--rw: 'trim' is unknown; one of read, write, randread, randwrite"},
      {{"--part", part, "--bs", "0"}, "--bs: '0' is not a multiple of 512 B"},
      {{"--part", part, "--bs", "1000"}, "--bs: '1000' is not a multiple of 512 B"},
      {{"--part", part, "--bs", "4Q"}, "--bs: '4Q'"},
      {{"--part", part, "--bs", ""}, "--bs: is empty"},
      {{"--part", part, "--bs", "200M", "--rw", "read"}, "--bs: '200 MiB' is more than --size, 100 MiB"},
      {{"--part", part, "--iodepth", "0"}, "--iodepth: '0' is not a whole number from 1 to 4096"},
      {{"--part", part, "--iodepth", "1.5"}, "--iodepth: '1.5' is not a whole number"},
      {{"--part", part, "--numjobs", "-1"}, "--numjobs"},
      {{"--part", part, "--size", "1T", "--rw", "read"},
       "--size: '1 TiB' is more than emmc_foresee_sld64g holds"},
      {{"--part", part, "--size", "99999999T"}, "--size: '99999999T'"},
      {{"--part", part, "--runtime", "0"}, "--runtime: '0' is not above 0, and up to 24 h"},
      {{"--part", part, "--runtime", "2 days"}, "--runtime: '2 days'"},
      {{"--part", part, "--fill", "1.5"}, "--fill: '1.5' is not a number from 0 to 1"},
      {{"--part", part, "--temperature", "40"}, "--temperature: '40'"},
      {{"--part", part, "--format", "xml"}, "--format: 'xml' is unknown; text or json"},
      {{"--part", part, "extra"}, "unknown argument 'extra'"},
      {{"--part", part, "--depth", "4"}, "unknown option '--depth'"}};
  for (const Bad& each : bad) {
    const Outcome outcome = bench(each.options);
    EXPECT_EQ(outcome.exit_code, 2) << each.words;
    EXPECT_THAT(outcome.err, HasSubstr(each.words));
    EXPECT_EQ(outcome.out, "");
  }
  EXPECT_THAT(kvsim({"storage", "benhc"}).err, HasSubstr("did you mean 'bench'?"));
  EXPECT_EQ(kvsim({"storage"}).exit_code, 2);
}

TEST_F(StorageBench, PartsAreListedAndExplained) {
  EXPECT_THAT(kvsim({"list", "storage"}).out, HasSubstr("nvme_sm2263xt_1tb\n"));
  EXPECT_THAT(kvsim({"explain", "storage/nvme_sm2263xt_1tb"}).out, HasSubstr("map_cache: 64 MiB"));
  EXPECT_THAT(kvsim({"explain", "storage"}).out, HasSubstr("flash.suspend"));
  EXPECT_THAT(kvsim({"storage", "bench", "--help"}).out, HasSubstr("--iodepth"));
}

}  // namespace
}  // namespace kvsim::testing

// SPDX-License-Identifier: Apache-2.0
#include "tests/validation/storage.h"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include "configs/error/error.h"
#include "configs/spec/resolve.h"
#include "configs/units/text.h"
#include "models/storage/fio_job.h"

namespace kvsim::testing {
namespace {

using namespace kvsim::literals;
using model::FioPattern;
using model::FioResult;
using model::FioSpec;
using Title = std::function<void(const std::string&)>;
using Row = std::function<void(const StorageRow&)>;

constexpr Bytes kIozoneFile = 100_MiB;
constexpr Picoseconds kSecond(1'000'000'000'000);
constexpr Picoseconds kLong(1'000'000'000'000'000);

FioResult run(const config::StoragePartSpec& part, const FioSpec& spec) {
  model::StorageDevice device(part);
  if (spec.pattern == FioPattern::read || spec.pattern == FioPattern::randread) {
    check(device.lay_out(Bytes(), spec.size), "the range fits");
  }
  model::FioJob job(device, spec);
  while (job.take_batch()) {
  }
  check(job.result().ios > 0, "something is measured");
  return job.result();
}

double megabytes(const FioResult& result) {
  return (result.moved / result.elapsed).count() / 1e6;
}

double iops(const FioResult& result) {
  return static_cast<double>(result.ios) / seconds(result.elapsed);
}

/// iozone -e -I -s 100M, MB/s.
struct IozoneRow {
  FioPattern pattern;
  Bytes block;
  double measured;
  double bound;
  bool sets_part;
};

void iozone(const std::string& part, const std::vector<IozoneRow>& rows, const Row& row) {
  constexpr std::array kNames = {"read", "write", "random read", "random write"};
  const config::StoragePartSpec spec = config::load_storage_part(part);
  for (const IozoneRow& each : rows) {
    const FioResult result =
        run(spec, {.pattern = each.pattern, .block = each.block, .size = kIozoneFile, .runtime = kLong});
    row({.what = fmt::format("{} {}, {}", part, kNames.at(static_cast<std::size_t>(each.pattern)),
                             to_text(each.block)),
         .measured = each.measured,
         .simulated = megabytes(result),
         .bound = each.bound,
         .sets_part = each.sets_part});
  }
}

void boards(const Title& title, const Row& row) {
  title("eMMC and SD on RK3588, O_DIRECT, 100 MB, MB/s (ThomasKaiser/Knowledge: ROCK 5B, ROCK 5 ITX)");
  const auto read = FioPattern::read, write = FioPattern::write, random = FioPattern::randread;
  iozone("emmc_foresee_sld64g",
         {{read, 4_KiB, 48.4, 0.15, true},
          {read, 16_KiB, 78, 0.15, true},
          {read, 512_KiB, 244, 0.15, true},
          {read, 1024_KiB, 256, 0.15, false},
          {read, 16384_KiB, 270, 0.1, true},
          {write, 16384_KiB, 143, 0.1, true},
          {random, 4_KiB, 34.3, 0.1, true}},
         row);
  iozone("emmc_samsung_bjtd4r",
         {{read, 16384_KiB, 295, 0.1, true},
          {write, 16384_KiB, 108, 0.1, true},
          {random, 4_KiB, 25.7, 0.1, true}},
         row);
  iozone("emmc_sandisk_dg4016",
         {{read, 4_KiB, 37.5, 0.15, true},
          {read, 16_KiB, 110.9, 0.15, false},
          {read, 16384_KiB, 255, 0.1, true},
          {write, 16384_KiB, 82, 0.1, true},
          {random, 4_KiB, 11.05, 0.1, true}},
         row);
  iozone("sd_sandisk_extreme_a1",
         {{read, 4_KiB, 14.5, 0.15, true},
          {read, 512_KiB, 64.2, 0.15, false},
          {read, 16384_KiB, 68.2, 0.1, true},
          {write, 16384_KiB, 61.2, 0.1, true},
          {random, 4_KiB, 10.3, 0.1, true}},
         row);
}

void spi_nand(const Title& title, const Row& row) {
  title("SPI NAND, 16 MiB, MB/s (openwrt issues 25246, 18694)");
  config::StoragePartSpec part = config::load_storage_part("spi_nand_w25n01gv");
  const FioSpec spec{.pattern = FioPattern::read, .block = 128_KiB, .size = 16_MiB, .runtime = kLong};
  row({.what = "read at 52 MHz",
       .measured = 12.2,
       .simulated = megabytes(run(part, spec)),
       .bound = 0.1,
       .sets_part = true});
  FioSpec writes = spec;
  writes.pattern = FioPattern::write;
  row({.what = "write at 52 MHz (1.45 to 1.74)",
       .measured = 1.6,
       .simulated = megabytes(run(part, writes)),
       .bound = 0.1,
       .sets_part = true});
  part.link.data_rate = Hertz(20'000'000);
  row({.what = "read at 20 MHz",
       .measured = 6.2,
       .simulated = megabytes(run(part, spec)),
       .bound = 0.1,
       .sets_part = true});
}

void spi_nor(const Title& title, const Row& row) {
  title("SPI NOR (Winbond W25Q128JV data sheet)");
  const FioResult result =
      run(config::load_storage_part("spi_nor_w25q128"),
          {.pattern = FioPattern::read, .block = 64_KiB, .size = 16_MiB, .runtime = kLong});
  row({.what = "read on and on at 104 MHz, MB/s",
       .measured = 50,
       .simulated = megabytes(result),
       .bound = 0.1});
}

void nvme_reads(const config::StoragePartSpec& part, const Row& row) {
  struct Depth {
    Bytes span;
    std::int64_t depth;
    std::int64_t jobs;
    double measured;
    bool sets_part;
  };
  const Depth depths[] = {{64_GiB, 1, 1, 8409, true},      {300_GiB, 1, 1, 7119, false},
                          {300_GiB, 4, 1, 21'813, false},  {64_GiB, 32, 1, 105'310, true},
                          {300_GiB, 32, 1, 84'859, false}, {64_GiB, 32, 4, 136'930, true},
                          {300_GiB, 32, 4, 109'133, false}};
  for (const Depth& each : depths) {
    const FioResult result = run(part, {.pattern = FioPattern::randread,
                                        .depth = each.depth,
                                        .jobs = each.jobs,
                                        .size = each.span,
                                        .runtime = kSecond * (each.depth == 1 ? 6 : 2),
                                        .ramp = kSecond * 2});
    row({.what = fmt::format("random read, depth {} x {} in {}, requests/s", each.depth, each.jobs,
                             to_text(each.span)),
         .measured = each.measured,
         .simulated = iops(result),
         .bound = 0.15,
         .sets_part = each.sets_part});
    if (each.depth == 1 && each.span == 300_GiB) {
      const auto us = [&](double share) {
        return static_cast<double>(result.completion.histogram.quantile(share)) / 1e3;
      };
      row({.what = "  p99 of these, us",
           .measured = 194,
           .simulated = us(0.99),
           .bound = 2,
           .is_factor = true,
           .sets_part = true});
      row({.what = "  p99.9 of these, us",
           .measured = 444,
           .simulated = us(0.999),
           .bound = 2,
           .is_factor = true});
    }
  }
}

void nvme(const Title& title, const Row& row) {
  title("NVMe SM2263XT on Orin NX (Hi5808/research-papers, research_8; fio 3.36)");
  const config::StoragePartSpec part = config::load_storage_part("nvme_sm2263xt_1tb");
  nvme_reads(part, row);
  FioSpec spec{.pattern = FioPattern::read, .block = 128_KiB, .depth = 32, .size = 8_GiB, .runtime = kLong};
  row({.what = "read 128 KiB, depth 32, MB/s",
       .measured = 2198,
       .simulated = megabytes(run(part, spec)),
       .bound = 0.1,
       .sets_part = true});
  spec.block = 1024_KiB;
  spec.depth = 8;
  row({.what = "read 1 MiB, depth 8, MB/s",
       .measured = 2184,
       .simulated = megabytes(run(part, spec)),
       .bound = 0.1});
  spec = {.pattern = FioPattern::write, .block = 128_KiB, .depth = 32, .size = 20_GiB, .runtime = kLong};
  row({.what = "write into the SLC cache, MB/s",
       .measured = 573,
       .simulated = megabytes(run(part, spec)),
       .bound = 0.1,
       .sets_part = true});
  spec.size = 122_GiB;
  spec.ramp = kSecond * 215;
  row({.what = "write past it, MB/s",
       .measured = 143,
       .simulated = megabytes(run(part, spec)),
       .bound = 0.1,
       .sets_part = true});
  const FioResult writes =
      run(part, {.pattern = FioPattern::randwrite, .size = 300_GiB, .runtime = kSecond * 8});
  const auto ms = [&](double share) {
    return static_cast<double>(writes.completion.histogram.quantile(share)) / 1e6;
  };
  row({.what = "random write, depth 1, p50, ms",
       .measured = 0.039,
       .simulated = ms(0.5),
       .bound = 2,
       .is_factor = true,
       .sets_part = true});
  row({.what = "random write, depth 1, p99.99, ms",
       .measured = 126.4,
       .simulated = ms(0.9999),
       .bound = 2,
       .is_factor = true});
}

void ufs(const Title& title, const Row& row) {
  title("UFS 4 of a phone, O_DIRECT random reads by threads (Helldez/BigMoeOnEdge docs/bench-data)");
  struct Cell {
    Bytes block;
    std::int64_t threads;
    double rate;     ///< MiB/s
    double latency;  ///< ms; 0: not given
    bool sets_part;
  };
  const Cell cells[] = {{4096_KiB, 1, 1810, 2.21, true},   {4096_KiB, 2, 2460, 3.25, false},
                        {4096_KiB, 4, 2458, 6.5, true},    {4096_KiB, 8, 2420, 13.2, false},
                        {4096_KiB, 32, 2255, 56.4, false}, {128_KiB, 2, 954, 0, true},
                        {128_KiB, 4, 1486, 0, false},      {128_KiB, 8, 1859, 0, true}};
  const config::StoragePartSpec part = config::load_storage_part("ufs_4_phone");
  for (const Cell& cell : cells) {
    const FioResult result = run(part, {.pattern = FioPattern::randread,
                                        .block = cell.block,
                                        .jobs = cell.threads,
                                        .size = 18_GiB,
                                        .runtime = kSecond * 2});
    const std::string what = fmt::format("{} by {} threads", to_text(cell.block), cell.threads);
    row({.what = what + ", MiB/s",
         .measured = cell.rate,
         .simulated = megabytes(result) * 1e6 / (1 << 20),
         .bound = 0.12,
         .sets_part = cell.sets_part});
    if (cell.latency > 0) {
      row({.what = what + ", mean latency, ms",
           .measured = cell.latency,
           .simulated = result.completion.mean() / 1e6,
           .bound = 0.12,
           .sets_part = cell.sets_part});
    }
  }
}

/// Figures of a spec sheet hold at the interface's full depth.
void ufs_by_spec_sheet(const Title& title, const Row& row) {
  title("UFS by spec sheet (Samsung's figures, unbxtech.com)");
  struct Sheet {
    std::string part;
    std::array<double, 2> megabytes;  ///< read, write
    std::array<double, 2> requests;
  };
  const Sheet sheets[] = {{"ufs_2_1", {860, 255}, {42'000, 40'000}},
                          {"ufs_3_1", {2100, 1200}, {100'000, 70'000}}};
  for (const Sheet& sheet : sheets) {
    const config::StoragePartSpec part = config::load_storage_part(sheet.part);
    const FioSpec large{.block = 512_KiB, .depth = 32, .size = 2_GiB, .runtime = kSecond * 4};
    const FioSpec small{.depth = 32, .size = 512_MiB, .runtime = kSecond};
    for (std::size_t i = 0; i < 2; ++i) {
      FioSpec spec = large;
      spec.pattern = i == 0 ? FioPattern::read : FioPattern::write;
      row({.what = fmt::format("{} {}, MB/s", sheet.part, i == 0 ? "read" : "write"),
           .measured = sheet.megabytes[i],
           .simulated = megabytes(run(part, spec)),
           .bound = 0.15,
           .sets_part = true});
      spec = small;
      spec.pattern = i == 0 ? FioPattern::randread : FioPattern::randwrite;
      row({.what = fmt::format("{} random {}, requests/s", sheet.part, i == 0 ? "read" : "write"),
           .measured = sheet.requests[i],
           .simulated = iops(run(part, spec)),
           .bound = 0.15,
           .sets_part = true});
    }
  }
}

}  // namespace

void measure_storage(const Title& title, const Row& row) {
  boards(title, row);
  spi_nand(title, row);
  spi_nor(title, row);
  nvme(title, row);
  ufs(title, row);
  ufs_by_spec_sheet(title, row);
}

}  // namespace kvsim::testing

// SPDX-License-Identifier: Apache-2.0
// llama.cpp in guests with less memory than its mapped weights, measured by counting disk reads and major
// faults for each decoded token (kernel 6.1, ext4, read_ahead_kb 128, one thread, no repacking, no swap).
#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "models/page_cache/page_cache.h"
#include "models/page_cache/page_cache_testing.h"

namespace kvsim::model {
namespace {

using testing::TestDisk;

struct Row {
  int guest_mib;
  std::int64_t total_kb;      ///< MemTotal
  std::int64_t available_kb;  ///< MemAvailable before the program
  double mb;                  ///< read for each token, median of the last 3 of 6
  double faults;
};
constexpr Row kRows[] = {{240, 206'224, 180'864, 0.00, 0},
                         {150, 114'064, 91'140, 65.44, 266},
                         {130, 93'776, 71'720, 76.23, 309},
                         {110, 75'344, 53'576, 89.32, 357},
                         {95, 59'984, 38'900, 104.04, 514}};

constexpr std::int64_t kAnonymousKb = 26'884;   // RssAnon at the end, in all rows
constexpr std::int64_t kVocabularyKb = 20'275;  // of that, before the weights are mapped: 19.8 MiB
// What the kernel takes beside, found from residency alone: MemAvailable - RssAnon - RssFile at the end is
// 9080, 10012, 11060 and 9492 kB; reclaim ends an eighth of min_free above the high mark's average. One mean
// for all.
constexpr std::int64_t kKernelKb = 10'450;
// RssFile where nothing is missing (92 216 kB) less the weights.
constexpr std::int64_t kCodeBytes = 4383 * 1024 / 65536 * 65536;
constexpr std::int64_t kMetadata = 2'359'296;  // file of 92.3 MB less the weights

struct Tensor {
  std::int64_t offset;
  std::int64_t bytes;
};
constexpr std::int64_t kVocabulary = 49'152;
constexpr std::int64_t kEmbeddingRow = 576 / 32 * 34;  // Q8_0
constexpr std::int64_t kEmbedding = kVocabulary * kEmbeddingRow;

// SmolLM2-135M Q4_0: token_embd, output_norm, then 30 layers of attn_norm, q, k, v, o, ffn_norm, gate, up,
// down.
std::vector<Tensor> layers() {
  constexpr std::int64_t kNorm = 576 * 4;
  constexpr std::int64_t kWide = 576 * 576 / 32 * 18;
  constexpr std::int64_t kNarrow = 576 * 192 / 32 * 18;
  constexpr std::int64_t kFeed = 576 * 1536 / 32 * 18;
  std::vector<Tensor> tensors;
  std::int64_t offset = kMetadata + kEmbedding + kNorm;
  for (int layer = 0; layer < 30; ++layer) {
    for (const std::int64_t bytes : {kNorm, kWide, kNarrow, kNarrow, kWide, kNorm, kFeed, kFeed, kFeed}) {
      tensors.push_back({offset, bytes});
      offset += bytes;
    }
  }
  EXPECT_EQ(offset - kMetadata, 89'941'248);
  return tensors;
}

struct PerToken {
  double mb = 0;
  double faults = 0;
};

class Guest {
 public:
  Guest(const Row& row, std::int64_t spare_kb, unsigned seed)
      : cache_(disk_, setup(row, spare_kb)), random_(seed) {
    disk_.keep_log = false;
    code_ = cache_.add_file(Bytes(kCodeBytes), {{Bytes(std::int64_t{1} << 30), Bytes(kCodeBytes)}});
    cache_.set_executable(code_);
    const std::int64_t pages = (kMetadata + 89'941'248 + kPageBytes - 1) / kPageBytes;
    weights_ = cache_.add_file(Bytes(kMetadata + 89'941'248), {{Bytes(0), Bytes(pages * kPageBytes)}});
    load();
    cache_.set_memory(setup(row, spare_kb).memory - Bytes((kAnonymousKb - kVocabularyKb) * 1024), now_);
  }

  PerToken token(int prompt) {
    const Bytes before = disk_.read;
    faults_ = 0;
    for (int i = 0; i < prompt; ++i) {
      touch(weights_, kMetadata + static_cast<std::int64_t>(random_() % kVocabulary) * kEmbeddingRow,
            kEmbeddingRow);
    }
    std::size_t count = 0;
    for (const Tensor& tensor : tensors_) {
      if (count++ % kCodeEvery == 0) {
        run_code(2);
      }
      touch(weights_, tensor.offset, tensor.bytes);
    }
    touch(weights_, kMetadata + kEmbedding, 576 * 4);
    touch(weights_, kMetadata, kEmbedding);
    return {(disk_.read - before).as_double() / 1e6, static_cast<double>(faults_)};
  }

 private:
  // Assumed: half of the program's 64 KiB blocks are used again and again, here every ten layers.
  static constexpr std::size_t kCodeEvery = 90;

  static CacheSetup setup(const Row& row, std::int64_t spare_kb) {
    CacheSetup setup;
    // Transparent huge pages raise min_free to 5 % (khugepaged.c, set_recommended_min_free_kbytes()).
    const std::int64_t min_free = row.total_kb / 20;
    // MemAvailable leaves out the high mark, which is memory all the same.
    setup.memory = Bytes((row.available_kb - kVocabularyKb + min_free * 3 / 2 - kKernelKb + spare_kb) * 1024);
    setup.min_free = Bytes(min_free * 1024);
    return setup;
  }
  void touch(FileId file, std::int64_t offset, std::int64_t bytes) {
    const Touched touched =
        cache_.touch(file, Bytes(offset), Bytes(bytes), {.each_page = Picoseconds(1'000'000)}, now_);
    now_ = touched.done;
    faults_ += touched.major_faults;
  }
  void run_code(std::int64_t share) {
    for (std::int64_t block = 0; block < kCodeBytes / 65536; block += share) {
      touch(code_, block * 65536, 1);
    }
  }
  // The loader reads the metadata, asks for sequential read-ahead, maps with MAP_POPULATE, and unmaps what is
  // no tensor (llama-mmap.cpp, llama-model-loader.cpp).
  void load() {
    run_code(1);
    for (std::int64_t offset = 0; offset < kMetadata; offset += kPageBytes) {
      now_ = cache_.touch(weights_, Bytes(offset), Bytes(kPageBytes), {.path = AccessPath::read}, now_).done;
    }
    cache_.advise(weights_, FileAdvice::sequential);
    now_ = cache_.populate(weights_, Bytes(0), Bytes(kMetadata + 89'941'248), now_).done;
    cache_.unmap(weights_, Bytes(0), Bytes(kMetadata));
  }

  TestDisk disk_;
  PageCache cache_;
  std::mt19937 random_;
  std::vector<Tensor> tensors_ = layers();
  FileId code_{};
  FileId weights_{};
  Picoseconds now_;
  std::int64_t faults_ = 0;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

PerToken decode(const Row& row, std::int64_t spare_kb, unsigned seed) {
  Guest guest(row, spare_kb, seed);
  guest.token(8);
  std::vector<double> mb;
  std::vector<double> faults;
  for (int i = 0; i < 6; ++i) {
    const PerToken token = guest.token(1);
    if (i >= 3) {
      mb.push_back(token.mb);
      faults.push_back(token.faults);
    }
  }
  return {median(mb), median(faults)};
}

class Thrash : public ::testing::TestWithParam<Row> {};

// Memory is known to about 1 MB, and the outcome hangs on where reclaim happens to stand: the median of
// guests with up to 1 MB more or less.
TEST_P(Thrash, ReadsAndFaultsPerToken) {
  const Row& row = GetParam();
  std::vector<double> mb;
  std::vector<double> faults;
  unsigned seed = 0;
  for (std::int64_t spare_kb = -1000; spare_kb <= 1000; spare_kb += 125) {
    const PerToken token = decode(row, spare_kb, ++seed);
    mb.push_back(token.mb);
    faults.push_back(token.faults);
  }
  fmt::print(
      "{} MiB: {:.1f} MB ({:.1f} to {:.1f}), measured {:.1f}; {:.0f} faults ({:.0f} to {:.0f}), measured "
      "{}\n",
      row.guest_mib, median(mb), *std::min_element(mb.begin(), mb.end()),
      *std::max_element(mb.begin(), mb.end()), row.mb, median(faults),
      *std::min_element(faults.begin(), faults.end()), *std::max_element(faults.begin(), faults.end()),
      row.faults);
  EXPECT_NEAR(median(mb), row.mb, 0.10 * row.mb);
  EXPECT_NEAR(median(faults), row.faults, 0.15 * row.faults);
}

INSTANTIATE_TEST_SUITE_P(Guests, Thrash, ::testing::ValuesIn(kRows),
                         [](const auto& test) { return fmt::format("{}MiB", test.param.guest_mib); });

}  // namespace
}  // namespace kvsim::model

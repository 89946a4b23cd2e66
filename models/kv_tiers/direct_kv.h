// SPDX-License-Identifier: Apache-2.0
// A KV cache whose engine chooses what is in memory: of every layer the newest blocks, or those that
// attention has read most often, and what it has asked for. All of it is written to the file, batch by batch,
// so that letting a block go costs nothing.
#pragma once

#include <deque>
#include <unordered_map>
#include <vector>

#include "models/kv_tiers/kv_file_map.h"
#include "models/kv_tiers/kv_path.h"
#include "models/page_cache/block_queue.h"

namespace kvsim::model {

class DirectKv final : public KvPath {
 public:
  struct Setup {
    KvGeometry geometry = {};
    config::KvTierSpec tiers = {};
    std::int64_t sram_blocks = 0;  ///< of each layer
    std::int64_t dram_blocks = 1;  ///< those in SRAM among them
    bool chooses = false;          ///< attention reads the blocks that it wants, other ones in each layer
    std::optional<KvConversion> conversion = {};
  };
  /// `device` and `file`, which has the file's own rows, outlive it.
  DirectKv(BlockDevice& device, const KvFileMap& file, const Setup& setup);

  void place(const CellTokens& cells) override;
  KvTierUse run(const std::optional<KvTouch>& touch, Picoseconds in_memory) override;
  KvTierUse end_step() override;
  [[nodiscard]] bool in_sram(std::int64_t layer, std::int64_t block) const override;
  [[nodiscard]] const std::optional<KvFailure>& failure() const override { return failure_; }
  [[nodiscard]] Picoseconds now() const { return now_; }
  /// Blocks of a layer that are in SRAM or DRAM.
  [[nodiscard]] std::int64_t held(std::int64_t layer) const;

 private:
  enum class Tier : std::uint8_t { none, sram, dram, device };
  struct Block {
    Tier tier = Tier::none;
    bool partial = false;  ///< in memory, but for older cells that are on the device
    bool fetched = false;  ///< asked for
    std::int64_t reads = 0;
    std::int64_t writes = 0;  ///< under way
    Picoseconds asked = {};
    Picoseconds arrived = {};
    std::int64_t filled = 0;  ///< cells
    std::int64_t score = 0;   ///< times that attention has read it
  };
  struct LayerState {
    std::vector<Block> blocks = {};
    std::deque<std::int64_t> order = {};    ///< the newest last
    CellRange unwritten = {};               ///< cells whose batch is not full
    std::int64_t reading = 0;               ///< requests
    bool is_ahead = false;                  ///< what is on the device has been asked for
    std::vector<std::int64_t> chosen = {};  ///< of all blocks, by attention in the step before
  };
  struct Transfer {
    std::int64_t layer = 0;  ///< of a log's entry the first
    std::int64_t layers = 1;
    std::int64_t block = 0;
    bool write = false;
  };

  void rank(const LayerState& layer);
  void admit(LayerState& layer, const std::vector<std::int64_t>& read);
  [[nodiscard]] bool can_leave(const LayerState& layer, std::int64_t block) const;
  void fetch(std::int64_t layer, std::int64_t block);
  void fetch_ahead(std::int64_t layer, const std::vector<std::int64_t>& blocks);
  KvTierUse attend(const KvTouch& touch, Picoseconds in_memory);
  [[nodiscard]] Picoseconds end_of(const std::vector<Picoseconds>& arrivals, std::int64_t blocks,
                                   Picoseconds in_memory) const;
  void append(std::int64_t layer, CellRange cells);
  void enter(LayerState& layer, std::int64_t block);
  void arrange(LayerState& layer, bool may_leave);
  void flush(std::int64_t layer, CellRange cells);
  void write_log();
  void submit(StorageOp op, const std::vector<FileExtent>& pieces, const Transfer& transfer);
  void take(const StorageCompletion& completion);
  void decode(Block& block);
  /// Takes completions until nothing is under way that `busy` counts.
  template <class Busy>
  void wait_while(Busy busy);

  BlockDevice& device_;
  const KvFileMap& file_;
  Setup setup_;
  std::vector<LayerState> layers_;
  std::unordered_map<std::uint64_t, Transfer> transfers_;
  std::vector<FileExtent> pieces_;
  std::vector<std::int64_t> ranked_;
  Picoseconds decoded_;      ///< what has come is in memory's format
  std::int64_t logged_ = 0;  ///< cells that are in the log
  Picoseconds now_;
  Picoseconds last_done_;
  std::optional<KvFailure> failure_;
};

}  // namespace kvsim::model

// SPDX-License-Identifier: Apache-2.0
// Linux's page cache: which bytes of files are in memory, what is read from the device and when, who waits.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "configs/units/quantity.h"
#include "models/page_cache/block_queue.h"
#include "models/page_cache/dirty_set.h"
#include "models/page_cache/page_lru.h"
#include "models/page_cache/window.h"

namespace kvsim::model {

enum class FileId : std::uint32_t {};

/// Where a part of a file lies on the device; the parts follow each other in the file. Whole pages.
struct FileExtent {
  Bytes offset = {};
  Bytes bytes = {};
};

enum class AccessPath : std::uint8_t {
  mapped,
  read,
  direct
};  ///< load and store, read() and write(), O_DIRECT

struct Access {
  AccessPath path = AccessPath::mapped;
  bool write = false;
  std::int64_t lane = 0;  ///< the thread that asks
  Picoseconds each_page =
      {};  ///< what it does with each page before it asks for the next: reads go on meanwhile
};

/// madvise() of a range of a mapping.
enum class MapAdvice : std::uint8_t { normal, random, sequential };
/// posix_fadvise() of an open file.
enum class FileAdvice : std::uint8_t { normal, random, sequential };

struct Touched {
  Picoseconds done = {};
  std::int64_t minor_faults = 0;
  std::int64_t major_faults = 0;  ///< as a process counts them: page absent, or tried again after waiting
  Bytes read = {};                ///< that it made the device read, ahead or not
  Picoseconds waited = {};        ///< for the device
  bool out_of_memory = false;     ///< no frame could be had; the rest was not touched
  std::optional<BlockDone> failed = {};  ///< a request that the device did not do
};

struct CacheSetup {
  Bytes memory = {};            ///< what file pages may use, and what is kept free
  Bytes min_free = {};          ///< min_free_kbytes; kswapd works between 5/4 and 3/2 of it
  Bytes read_ahead{128 << 10};  ///< read_ahead_kb
  BlockLimits block;
  Picoseconds minor_fault = {};
  Picoseconds major_fault = {};  ///< the processor's part
  Picoseconds call = {};         ///< of read() and write()
  Picoseconds copy_page = {};    ///< between cache and caller
  bool prefault_old = false;  ///< fault-around leaves the accessed bit clear: arm64 with hardware access flag
  double dirty_background = 0.10;  ///< of free and file pages
  double dirty_limit = 0.20;
  Picoseconds dirty_expire{30'000'000'000'000};
};

struct CacheCounters {
  Bytes asked = {};                   ///< in whole pages
  Bytes from_cache = {};              ///< there or on its way
  Bytes from_device = {};             ///< read because it was asked for
  Bytes direct_read, direct_written;  ///< past the cache
  Bytes read_ahead = {};              ///< read before it was asked for,
  Bytes wasted = {};                  ///< and evicted or dropped before that
  Bytes written_back = {};
  std::int64_t minor_faults = 0, major_faults = 0;
  std::int64_t requests = 0;
  LruCounters lru;
};

class PageCache final : private ReclaimOwner {
 public:
  PageCache(BlockDevice& device, const CacheSetup& setup);
  PageCache(const PageCache&) = delete;
  PageCache& operator=(const PageCache&) = delete;

  /// A file of whole pages, or with a last page that is not full; the extents hold all of it.
  FileId add_file(Bytes size, const std::vector<FileExtent>& extents);
  /// The file is a program: pages mapped from now on are code.
  void set_executable(FileId file) { file_of(file).code = true; }
  /// Accesses the bytes in order. Calls come in the order of their times.
  Touched touch(FileId file, Bytes first, Bytes bytes, const Access& access, Picoseconds now);
  /// MAP_POPULATE: faults all pages of the range in.
  Touched populate(FileId file, Bytes first, Bytes bytes, Picoseconds now);
  /// mlock(), munlock(): populates, and keeps.
  Touched lock(FileId file, Bytes first, Bytes bytes, Picoseconds now);
  void unlock(FileId file, Bytes first, Bytes bytes);
  /// munmap(): accessed bits become accesses of the pages, which stay.
  void unmap(FileId file, Bytes first, Bytes bytes);
  /// fsync()
  Touched sync(FileId file, Picoseconds now);

  void advise(FileId file, Bytes first, Bytes bytes, MapAdvice advice);
  void advise(FileId file, FileAdvice advice);
  /// MADV_WILLNEED and POSIX_FADV_WILLNEED: begins to read, no more than one window or longest request.
  void will_need(FileId file, Bytes first, Bytes bytes, Picoseconds now);
  /// POSIX_FADV_DONTNEED: drops what is clean and not mapped.
  void drop(FileId file, Bytes first, Bytes bytes);
  /// Anonymous memory grew or shrank: what is left to file pages and free ones.
  void set_memory(Bytes memory, Picoseconds now);

  [[nodiscard]] CacheCounters counters() const;
  [[nodiscard]] Bytes resident() const { return Bytes(lru_.resident() * kPageBytes); }
  [[nodiscard]] Bytes resident(FileId file) const;
  [[nodiscard]] Bytes mapped(FileId file) const;
  [[nodiscard]] Bytes dirty() const { return Bytes(dirty_ * kPageBytes); }
  /// On its way to the device.
  [[nodiscard]] Bytes writing() const { return Bytes(writeback_ * kPageBytes); }
  [[nodiscard]] const PageLru& lru() const { return lru_; }
  [[nodiscard]] const PageTable& pages() const { return pages_; }

 private:
  struct PlacedExtent {
    std::int64_t first = 0;  ///< page of the file
    std::int64_t pages = 0;
    Bytes offset = {};
  };
  struct AdviceRange {
    std::int64_t end = 0;  ///< from the end of the range before
    MapAdvice advice = MapAdvice::normal;
  };
  struct File {
    PageId base = 0;
    std::int64_t pages = 0;
    std::vector<PlacedExtent> extents;
    std::vector<AdviceRange> advice;
    ReadAheadWindow window;
    bool random = false;  ///< FMODE_RANDOM
    bool code = false;    ///< VM_EXEC
    DirtySet dirty;
    Picoseconds dirtied;  ///< when the first of them was
    std::int64_t writeback = 0;
  };
  /// One call while it runs.
  struct Call {
    File& file;
    Access access;
    Picoseconds now = {};
    PageRun demand = {};        ///< what is asked for at once
    std::int64_t demanded = 0;  ///< pages read because of that
    bool mark_accessed = false;
    Touched result = {};
  };
  class Presence;

  // page_cache.cpp
  File& file_of(FileId file) { return files_[static_cast<std::size_t>(file)]; }
  File& file_of(PageId page);
  [[nodiscard]] PageRun range(const File& file, Bytes first, Bytes bytes) const;
  Touched finish_call(Call& call, std::int64_t visited);
  [[nodiscard]] FrameMarks marks(Bytes memory) const;

  // cache_io.cpp
  void collect(Picoseconds now);
  bool wait_any(Call& call);
  void wait_for(Call& call, PageId page);
  void finish_request(const BlockDone& done);
  bool take_frame(Call& call, PageId page, bool may_wait);
  void wake_flusher(const Call& call);
  void read_pages(Call& call, const ReadPlan& plan);
  bool read_one(Call& call, std::int64_t index);
  void force_read(Call& call, std::int64_t first, std::int64_t pages);
  void submit_run(File& file, const PageRun& run, StorageOp op, const Call& call);
  void evict(PageId page) override;

  // cache_mapped.cpp
  std::int64_t touch_mapped(Call& call, const PageRun& run);
  bool fault(Call& call, std::int64_t index);
  bool fault_absent(Call& call, std::int64_t index, MapAdvice advice);
  void fault_present(Call& call, std::int64_t index);
  void map_around(Call& call, std::int64_t index);
  [[nodiscard]] static MapAdvice advice_at(const File& file, std::int64_t index);

  // cache_calls.cpp
  std::int64_t read_call(Call& call, const PageRun& run);
  bool bring_in(Call& call, std::int64_t index);
  std::int64_t write_call(Call& call, const PageRun& run, Bytes first, Bytes bytes);
  void direct_call(Call& call, const PageRun& run);
  void drop_page(PageId page);

  // write_back.cpp
  void make_dirty(Call& call, std::int64_t index);
  void write_back(File& file, std::int64_t most, const Call& call);
  void balance_dirty(Call& call);
  void write_expired(Picoseconds now);
  void met_dirty(PageId page) override;

  CacheSetup setup_;
  PageTable pages_;
  PageLru lru_;
  BlockQueue queue_;
  std::vector<File> files_;
  CacheCounters counters_;
  std::int64_t dirty_ = 0;
  std::int64_t writeback_ = 0;
  std::int64_t direct_left_ = 0;
  bool reclaim_met_dirty_ = false;
  std::optional<BlockDone> failed_;
};

}  // namespace kvsim::model

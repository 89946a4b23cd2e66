// SPDX-License-Identifier: Apache-2.0
// Resolved description of a DRAM part and of the controller in front of it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "configs/units/quantity.h"

namespace kvsim::config {

enum class DramStandard { lpddr3, lpddr4, lpddr4x, lpddr5, lpddr5x, ddr4, ddr5, psram };

/// A timing as JEDEC writes it: the larger of a time and a number of clocks ("18 ns", "4 tCK", "10 ns min 4
/// tCK").
struct ClockedTime {
  Picoseconds time;
  std::int64_t clocks = 0;

  bool operator==(const ClockedTime&) const = default;
};

/// Timings of one part, named as JEDEC does. All from command to command of one channel. Where a standard has
/// no such timing it is zero, or equal to its other (tCCD_L to tCCD).
struct DramTiming {
  ClockedTime read_latency;   ///< RL plus tDQSCK: read command to first data beat
  ClockedTime write_latency;  ///< WL plus tDQSS: write command to first data beat
  ClockedTime tRCD;           ///< activate to read or write
  ClockedTime tRPpb;          ///< precharge (one bank) to activate
  ClockedTime tRPab;          ///< precharge (all banks) to activate or refresh
  ClockedTime tRAS;           ///< activate to precharge, same bank
  ClockedTime tRRD;           ///< activate to activate, same rank, other bank group
  ClockedTime tRRD_L;         ///< the same within a bank group
  ClockedTime tFAW;           ///< window that holds at most four activates of a rank
  ClockedTime tCCD;           ///< read to read or write to write, other bank group
  ClockedTime tCCD_L;         ///< the same within a bank group
  ClockedTime tCCD_L_WR;      ///< write to write within a bank group
  ClockedTime tCCDMW;         ///< write to masked write, same bank
  ClockedTime tWTR;           ///< end of write data to read, same rank, other bank group
  ClockedTime tWTR_L;         ///< the same within a bank group
  ClockedTime tRTP;      ///< read to precharge: the part's tRTP; the burst is added by the standard's rule
  ClockedTime tWR;       ///< end of write data to precharge
  ClockedTime tPPD;      ///< precharge to precharge, same rank
  ClockedTime tRTRS;     ///< bus gap when the rank changes
  ClockedTime tRFCab;    ///< refresh of all banks
  ClockedTime tRFCpb;    ///< refresh of one bank; zero where the standard has none
  ClockedTime tpbR2pbR;  ///< per-bank refresh to per-bank refresh of another bank
  ClockedTime tpbR2act;  ///< per-bank refresh to activate of another bank
  ClockedTime tREFI;     ///< average interval between all-bank refreshes, at normal temperature
  ClockedTime tCKE;      ///< shortest time in power-down
  ClockedTime tXP;       ///< power-down exit to any command
  ClockedTime tSR;       ///< shortest time in self-refresh
  ClockedTime tXSR;      ///< self-refresh exit to any command

  bool operator==(const DramTiming&) const = default;
};

/// Energy of one rank of one channel: what its dies take together. Commands cost energy, states cost power.
struct DramEnergy {
  Joules activate;          ///< one activate with its precharge, above standby
  Joules read_burst;        ///< one burst read, array and bus, above standby,
  Joules write_burst;       ///< and one written
  Joules refresh_all;       ///< one refresh of all banks, above standby,
  Joules refresh_bank;      ///< and one of one bank
  Watts active_standby;     ///< some bank open
  Watts precharge_standby;  ///< all banks closed
  Watts active_power_down;
  Watts precharge_power_down;
  Watts self_refresh;

  bool operator==(const DramEnergy&) const = default;
};

/// What of a DramEnergy each supply draws. Which there are depends on the standard and on the source.
struct DramRails {
  std::optional<DramEnergy> VDD1;
  std::optional<DramEnergy> VDD2;
  std::optional<DramEnergy> VDDQ;

  bool operator==(const DramRails&) const = default;
};

/// A serial PSRAM's commands: chip select falls, command and address, latency, data, chip select rises.
/// Refresh is hidden; rows are not seen.
struct PsramTiming {
  ClockedTime command;          ///< command and address on the bus
  ClockedTime read_latency;     ///< end of the address to the first data,
  ClockedTime write_latency;    ///< and of a write
  ClockedTime refresh_latency;  ///< added if a hidden refresh is under way; zero: the latencies hold it
  ClockedTime tREFI;            ///< between hidden refreshes
  ClockedTime setup;            ///< chip select to the command
  ClockedTime hold;             ///< last data to the end of chip select
  ClockedTime tCPH;             ///< end of chip select to the next one
  ClockedTime tCEM;             ///< longest chip select, as no refresh is made during it
  Picoseconds controller;       ///< what the controller adds to each command, without chip select

  bool operator==(const PsramTiming&) const = default;
};

/// Transfers per second. Users write it in MT/s and never in Hz: of a clock it is a multiple.
struct DataRate : Hertz {
  constexpr DataRate() = default;
  constexpr DataRate(Hertz rate) : Hertz(rate) {}  // NOLINT(google-explicit-constructor): it is one
};

struct DramPartSpec {
  std::string name;
  std::string description;
  DramStandard standard = DramStandard::lpddr4x;
  DataRate data_rate;  ///< transfers per second on each data line
  std::int64_t transfers_per_clock =
      2;                           ///< data beats per CK cycle: 2 in LPDDR4, 8 in LPDDR5 with WCK:CK 4:1
  std::int64_t burst_length = 16;  ///< beats
  std::int64_t width_bits = 16;    ///< data lines of a channel
  std::int64_t bank_groups = 1;
  std::int64_t banks = 8;  ///< per rank, over all bank groups
  /// Banks that one per-bank refresh takes together: a bank of the first such share of the rank, and those as
  /// far on in the others (LPDDR5: n and n + 8; DDR5: the same bank of every group).
  std::int64_t banks_per_refresh = 1;
  std::int64_t rows = 65536;
  std::int64_t columns = 1024;
  DramTiming timing;                 ///< of all standards but psram,
  std::optional<PsramTiming> psram;  ///< and of that one
  std::optional<DramEnergy> energy;  ///< none: no source gives it
  std::optional<DramRails> rails;    ///< none: no source splits it

  bool operator==(const DramPartSpec&) const = default;
};

/// The command clock CK.
[[nodiscard]] Hertz command_clock(const DramPartSpec& part);
/// The larger of a timing's time and its clocks, in a clock of `clock`.
[[nodiscard]] Picoseconds duration(const ClockedTime& timing, Hertz clock);
/// Bytes that one row of one channel holds: columns x width.
[[nodiscard]] Bytes row_bytes(const DramPartSpec& part);
/// Bytes that one read or write command moves.
[[nodiscard]] Bytes burst_bytes(const DramPartSpec& part);
/// Bytes of one rank of one channel.
[[nodiscard]] Bytes rank_bytes(const DramPartSpec& part);
/// Per-bank refreshes of a rank until each of its banks was in one.
[[nodiscard]] std::int64_t refresh_sets(const DramPartSpec& part);
/// Per-bank refreshes of a rank in each tREFI. DDR5 has them in fine granularity refresh only, where tREFI is
/// halved (JESD79-5, 4.13).
[[nodiscard]] std::int64_t bank_refreshes(const DramPartSpec& part);
/// Refreshes that may be postponed at most: eight (JESD209-3 to -5, JESD79-4), four in DDR5 (JESD79-5).
[[nodiscard]] std::int64_t most_postponed(const DramPartSpec& part);
/// What of a part is allowed but odd, each in a sentence: to be told to the user.
[[nodiscard]] std::vector<std::string> part_notes(const DramPartSpec& part);

/// One bit of a coordinate: the XOR of the address bits set in `mask`.
struct AddressBit {
  std::uint64_t mask = 0;
  bool operator==(const AddressBit&) const = default;
};

/// Where an address map comes from: bit by bit, or by name from the geometry (named_map.h).
enum class MapOrder { masks, row_bank_column, bank_row_column, row_bank_column_group };

/// Physical address to DRAM coordinates, least significant bit first. Together the bits must be a bijection.
struct AddressMapSpec {
  MapOrder order = MapOrder::masks;
  Bytes channel_granule{256};  ///< of a named map: addresses after which the channel changes
  bool hash = false;           ///< of a named map: bank bits are XORed with low row bits
  std::vector<AddressBit> channel;
  std::vector<AddressBit> rank;
  std::vector<AddressBit> bank;
  std::vector<AddressBit> row;
  std::vector<AddressBit> column;  ///< byte within the row, so it includes the byte within the burst

  bool operator==(const AddressMapSpec&) const = default;
};

enum class RefreshMode { none, all_bank, per_bank };

/// When a row is closed: when another row of its bank is asked for; after each access unless a queued request
/// hits it; or after it has been idle for `page_timeout`.
enum class PagePolicy { open, closed, adaptive };

/// Which requests the scheduler chooses from: one pool for the channel, or as many for each bank.
enum class QueueKind { shared, bank };

struct MemoryControllerSpec {
  std::int64_t channels = 4;
  std::int64_t ranks = 1;
  RefreshMode refresh = RefreshMode::per_bank;
  std::int64_t postponed_refreshes = 0;  ///< refreshes of a rank that may wait while requests are queued
  Celsius temperature{45};               ///< of the DRAM, which sets the refresh interval (JEDEC MR4)
  bool turnaround = true;                ///< false drops the read/write turnaround, for what-if runs only
  PagePolicy page_policy = PagePolicy::open;
  Picoseconds page_timeout;  ///< of the adaptive policy
  QueueKind queue = QueueKind::shared;
  std::int64_t read_queue = 64;  ///< requests the scheduler chooses from, of the channel or of each bank
  std::int64_t write_queue = 64;
  std::int64_t write_high = 48;             ///< start to drain writes at this fill,
  std::int64_t write_low = 16;              ///< stop at this one
  Picoseconds age_cap;                      ///< a request this old goes before younger row hits
  std::optional<Picoseconds> power_down;    ///< idle time of a rank after which it powers down; none: never
  std::optional<Picoseconds> self_refresh;  ///< and after which it refreshes itself
  AddressMapSpec mapping;

  bool operator==(const MemoryControllerSpec&) const = default;
};

}  // namespace kvsim::config

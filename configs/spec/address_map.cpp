// SPDX-License-Identifier: Apache-2.0
#include "configs/spec/address_map.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "configs/spec/grammar.h"
#include "configs/spec/named_map.h"

namespace kvsim::config {
namespace {

std::uint64_t low_bits(int count) {
  return (std::uint64_t{1} << count) - 1;
}

struct Coordinate {
  std::string name;
  const std::vector<AddressBit>& bits;
  std::int64_t values;  ///< that it must tell apart
  std::string counted;  ///< what they are: "rows"
};

std::vector<Coordinate> coordinates(const DeviceSpec& device) {
  const AddressMapSpec& map = device.controller.mapping;
  return {{"channel", map.channel, device.controller.channels, "channels"},
          {"rank", map.rank, device.controller.ranks, "ranks"},
          {"bank", map.bank, device.dram.banks, "banks"},
          {"row", map.row, device.dram.rows, "rows"},
          {"column", map.column, row_bytes(device.dram).count(), "bytes of a row"}};
}

/// One row of the matrix over GF(2) that the map is.
struct Equation {
  std::string coordinate;
  std::uint64_t mask;
  std::uint64_t combined;  ///< set of the map's bits, by number, whose XOR `mask` is
  std::string name;        ///< "bank bit 1 (14^12)"
};

std::vector<Equation> equations(const std::vector<Coordinate>& all) {
  std::vector<Equation> result;
  for (const Coordinate& coordinate : all) {
    for (std::size_t i = 0; i < coordinate.bits.size(); ++i) {
      const AddressBit bit = coordinate.bits[i];
      const std::string text = ListGrammar<std::vector<AddressBit>>::to_items({bit}).front();
      result.push_back({coordinate.name, bit.mask, std::uint64_t{1} << result.size(),
                        fmt::format("{} bit {} ({})", coordinate.name, i, text)});
    }
  }
  return result;
}

/// Gaussian elimination. A set of bits whose XOR is always 0 says nothing new; it is told at the last of
/// them.
std::vector<MapProblem> dependent_bits(const std::vector<Equation>& all) {
  std::vector<MapProblem> problems;
  std::vector<Equation> basis;
  for (Equation equation : all) {
    for (const Equation& known : basis) {
      const std::uint64_t pivot = std::bit_floor(known.mask);
      if ((equation.mask & pivot) == 0) {
        continue;
      }
      equation.mask ^= known.mask;
      equation.combined ^= known.combined;
    }
    if (equation.mask != 0) {
      basis.push_back(equation);
      continue;
    }
    std::vector<std::string> names;
    for (std::size_t i = 0; i < all.size(); ++i) {
      if ((equation.combined >> i & 1) != 0) {
        names.push_back(all[i].name);
      }
    }
    problems.push_back(
        {equation.coordinate, fmt::format("{} repeat each other (their XOR is always 0), so two addresses "
                                          "would share one place",
                                          fmt::join(names, " and "))});
  }
  return problems;
}

std::vector<MapProblem> wrong_counts(const std::vector<Coordinate>& all) {
  std::vector<MapProblem> problems;
  for (const Coordinate& coordinate : all) {
    const int needed = coordinate_bits(coordinate.values);
    if (std::ssize(coordinate.bits) == needed) {
      continue;
    }
    problems.push_back({coordinate.name, fmt::format("has {} bits, but {} {} need {}", coordinate.bits.size(),
                                                     coordinate.values, coordinate.counted, needed)});
  }
  return problems;
}

/// Of rows or ranks that are no power of two some values do not exist. Their upper bits have to be the
/// topmost address bits as they are: then the places that do not exist are just the addresses beyond the
/// memory.
std::vector<MapProblem> partial_coordinates(const std::vector<Coordinate>& all) {
  std::vector<MapProblem> problems;
  int address_bits = 0;
  for (const Coordinate& coordinate : all) {
    address_bits += static_cast<int>(coordinate.bits.size());
  }
  bool another = false;
  for (const Coordinate& coordinate : all) {
    const int partial = partial_bits(coordinate.values);
    if (partial > 0 && another) {
      problems.push_back(
          {coordinate.name, "neither rows nor ranks are a power of two; one of them has to be"});
    }
    another = another || partial > 0;
    for (int i = 0; i < partial; ++i) {
      const std::size_t bit = coordinate.bits.size() - static_cast<std::size_t>(partial - i);
      const int wanted = address_bits - partial + i;
      if (coordinate.bits[bit].mask != std::uint64_t{1} << wanted) {
        problems.push_back({coordinate.name,
                            fmt::format("bit {} has to be address bit {} alone, since {} {} are no power of "
                                        "two and the addresses end with them",
                                        bit, wanted, coordinate.values, coordinate.counted)});
      }
    }
  }
  return problems;
}

/// Bits beyond the memory, and bits below a line's size anywhere but in the low column bits.
std::vector<MapProblem> misplaced_bits(const std::vector<Coordinate>& all, Bytes capacity, Bytes line) {
  std::vector<MapProblem> problems;
  const int address_bits = coordinate_bits(capacity.count());
  const int line_bits = coordinate_bits(line.count());
  for (const Coordinate& coordinate : all) {
    for (std::size_t i = 0; i < coordinate.bits.size(); ++i) {
      const std::uint64_t mask = coordinate.bits[i].mask;
      if ((mask & ~low_bits(address_bits)) != 0) {
        problems.push_back(
            {coordinate.name, fmt::format("bit {} uses address bit {}, but {} have bits 0 to {}", i,
                                          std::bit_width(mask) - 1, to_text(capacity), address_bits - 1)});
      }
      const bool byte_in_line = coordinate.name == "column" && i < static_cast<std::size_t>(line_bits);
      if (byte_in_line ? mask != std::uint64_t{1} << i : (mask & low_bits(line_bits)) != 0) {
        problems.push_back(
            {coordinate.name,
             fmt::format("bit {}: address bits 0 to {} must be column bits 0 to {}, so that the {} of a "
                         "cache line or burst lie in one row",
                         i, line_bits - 1, line_bits - 1, to_text(line))});
      }
    }
  }
  return problems;
}

/// The first of each coordinate: one wrong run of bits makes many.
std::vector<MapProblem> first_of_each(std::vector<MapProblem> problems) {
  std::vector<MapProblem> firsts;
  for (MapProblem& problem : problems) {
    if (std::ranges::find(firsts, problem.coordinate, &MapProblem::coordinate) == firsts.end()) {
      firsts.push_back(std::move(problem));
    }
  }
  return firsts;
}

}  // namespace

std::vector<MapProblem> address_map_problems(const DeviceSpec& device) {
  const std::vector<Coordinate> all = coordinates(device);
  // With a wrong number of bits everything else follows, so it is told alone.
  if (std::vector<MapProblem> problems = wrong_counts(all); !problems.empty()) {
    return problems;
  }
  if (std::vector<MapProblem> problems = partial_coordinates(all); !problems.empty()) {
    return problems;
  }
  const Bytes capacity = dram_capacity(device);
  std::vector<MapProblem> problems =
      misplaced_bits(all, capacity, std::max(device.llc.line, burst_bytes(device.dram)));
  if (!problems.empty()) {
    return first_of_each(std::move(problems));
  }
  const std::vector<Equation> matrix = equations(all);
  std::uint64_t unused = low_bits(coordinate_bits(capacity.count()));
  for (const Equation& equation : matrix) {
    unused &= ~equation.mask;
  }
  std::vector<int> missing;
  for (; unused != 0; unused &= unused - 1) {
    missing.push_back(std::countr_zero(unused));
  }
  if (!missing.empty()) {
    const bool one = missing.size() == 1;
    problems.push_back(
        {"", fmt::format("address bit{} {} {} in no coordinate; {} missing", one ? "" : "s",
                         fmt::join(missing, ", "), one ? "is" : "are", one ? "it is" : "they are")});
  }
  std::ranges::move(dependent_bits(matrix), std::back_inserter(problems));
  return first_of_each(std::move(problems));
}

}  // namespace kvsim::config

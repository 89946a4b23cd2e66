// SPDX-License-Identifier: Apache-2.0
// Devices for the models' tests: round numbers, independent of the catalogue.
#pragma once

#include <string_view>
#include <vector>

#include "configs/spec/device_spec.h"

namespace kvsim::model::testing {

/// Address bits from a list like "7 8 13^11", least significant first.
[[nodiscard]] std::vector<config::AddressBit> address_bits(std::string_view text);

/// The shape of an RK3588: LPDDR4X-4224, 4 channels x 16 bit, 2 ranks, 8 GiB, hashed banks; four cores that
/// keep 28 lines in flight.
[[nodiscard]] config::DeviceSpec device();

/// One channel and one rank of the same part, mapped so that an address can be read: a row is 2 KiB, bank b
/// of row r starts at (8 r + b) x 2 KiB.
[[nodiscard]] config::DeviceSpec plain_device();

/// `device()` with one rank: 4 GiB.
[[nodiscard]] config::DeviceSpec one_rank_device();

/// `device()` with LPDDR5-4800: a command clock of 600 MHz and 16 banks in four groups.
[[nodiscard]] config::DeviceSpec lpddr5_device();

}  // namespace kvsim::model::testing

// SPDX-License-Identifier: Apache-2.0
#include "tests/validation/heat_data.h"

#include <cmath>
#include <fstream>
#include <sstream>

#include <fmt/format.h>

#include "configs/error/error.h"

namespace kvsim::testing {

std::vector<Row> read_table(const std::string& name) {
  const std::string path = fmt::format("{}/tests/data/heat/{}.csv", KVSIM_SOURCE_DIR, name);
  std::ifstream file(path);
  check(file.is_open(), "the data of the tests is there");
  std::vector<Row> rows;
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::istringstream fields(line);
    Row row;
    for (std::string field; std::getline(fields, field, ',');) {
      row.push_back(std::stod(field));
    }
    rows.push_back(row);
  }
  check(rows.size() > 1, "the table has rows");
  return rows;
}

Picoseconds time_of(double seconds) {
  return Picoseconds(std::llround(seconds * 1e12));
}

config::ThermalLinkSpec& link_of(config::DeviceSpec& device, const std::string& from, std::string_view to) {
  for (config::ThermalCaseSpec& each : device.thermal->cases) {
    for (config::ThermalLinkSpec& link : each.links) {
      if (each.name == device.thermal->case_name && link.from == from && link.to == to) {
        return link;
      }
    }
  }
  check(false, "the link exists");
  return device.thermal->cases.front().links.front();
}

}  // namespace kvsim::testing

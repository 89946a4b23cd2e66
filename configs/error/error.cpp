// SPDX-License-Identifier: Apache-2.0
#include "configs/error/error.h"

#include <fmt/format.h>

namespace kvsim {

void fail_check(const char* what, const std::source_location& where) {
  throw InternalError(fmt::format("{}:{}: {} does not hold", where.file_name(), where.line(), what));
}

}  // namespace kvsim

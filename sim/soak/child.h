// SPDX-License-Identifier: Apache-2.0
// Work in processes of its own that tell a text: for simulations, of which a process can have but one.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace kvsim::sim {

/// Processes that run side by side. Those whose result nobody took are ended with this. Precondition: this
/// process has no threads.
class Children {
 public:
  using Work = std::function<std::string()>;
  enum class Ticket : std::size_t {};

  /// If `stop` is set, listening throws Interrupted.
  explicit Children(const std::atomic<bool>* stop);
  ~Children();
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;

  /// Throws UserError if the system gives no process.
  Ticket start(const Work& work);
  /// Those that have not told everything yet.
  [[nodiscard]] std::size_t running() const;
  [[nodiscard]] bool is_done(Ticket ticket) const;
  /// Waits a little for what they tell.
  void listen();
  /// What the work returned. Throws UserError with the message of one that it threw, Interrupted if it did,
  /// std::runtime_error for any other failure. Precondition: it is done, and nobody took it before.
  [[nodiscard]] std::string take(Ticket ticket);

 private:
  class Child;
  std::map<Ticket, std::unique_ptr<Child>> children_;
  std::size_t started_ = 0;
  const std::atomic<bool>* stop_;
};

/// What each piece of work returns, in their order; `at_once` of them run side by side. Throws as take() for
/// the first in their order that fails; the others are ended first.
[[nodiscard]] std::vector<std::string> in_children(const std::vector<Children::Work>& work,
                                                   std::size_t at_once, const std::atomic<bool>* stop);

}  // namespace kvsim::sim

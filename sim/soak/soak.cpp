// SPDX-License-Identifier: Apache-2.0
#include "sim/soak/soak.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "configs/error/error.h"
#include "configs/units/text.h"
#include "sim/run/runner.h"
#include "sim/soak/slowdown.h"
#include "sim/soak/states.h"
#include "sim/soak/window.h"

namespace kvsim::sim {

using namespace kvsim::literals;

namespace {

constexpr Picoseconds kMinute(60'000'000'000'000);
/// What happens to a device that pauses: governors and rules look at it so often.
constexpr Picoseconds kLook = 100_ms;

enum class Doing { prefill, decode };

/// The board at rest, and the temperature of its memory there.
std::optional<Celsius> settled(model::Board& board, const config::RunSpec& spec) {
  board.settle(States(spec, std::nullopt).resting(board));
  return board.dram_temperature();
}

class Soak {
 public:
  Soak(const config::RunSpec& spec, const std::function<void(double)>& progress,
       const std::atomic<bool>* stop)
      : spec_(spec),
        soak_(*spec.soak),
        progress_(progress),
        stop_(stop),
        table_(spec, stop),
        board_(spec.device),
        states_(spec, settled(board_, spec)),
        slowdown_(table_, states_) {
    for (const config::SoakRule& rule : soak_.rules) {
      rules_.push_back({.rule = rule});
    }
  }

  SoakRecord run() {
    prepare();
    while (now() < soak_.duration && !board_.state().down_at) {
      answer();
    }
    sample();  // what remains
    return finish();
  }

 private:
  struct Rule {
    config::SoakRule rule;
    bool on = false;
  };

  [[nodiscard]] Picoseconds now() const { return board_.now(); }
  [[nodiscard]] bool over() const { return now() >= soak_.duration || down_; }

  /// The states that a run begins with, side by side.
  void prepare() {
    WindowState prefill = states_.of(board_, {});
    prefill.prefill = true;
    table_.prepare({states_.fastest(), prefill, states_.fastest_alone()}, states_.likely_after(prefill));
  }

  void answer() {
    work(Doing::prefill, 0);
    for (std::int64_t i = 0; i < spec_.workload.generate && !over(); ++i) {
      const Picoseconds began = now();
      if (work(Doing::decode, spec_.workload.prompt + i)) {
        tokens_.push_back({.end = now(), .time = now() - began});
        ++sampled_tokens_;
      }
    }
    answers_ += over() ? 0 : 1;
    rest(soak_.pause);
  }

  /// A prefill or a token, from its begin to its end, whatever the clocks do meanwhile. False if the run was
  /// over before.
  bool work(Doing doing, std::int64_t depth) {
    wait_for_rules();
    double left = 1;
    while (left > 0 && !over()) {
      WindowState state = states_.of(board_, settings());
      state.prefill = doing == Doing::prefill;
      if (!table_.knows(state)) {
        table_.prepare({state}, states_.likely_after(state));
      }
      const Window& window = table_.at(state);
      const double whole = time_of(window, state, doing, depth);
      const auto wanted = Picoseconds(std::max<std::int64_t>(1, std::llround(left * whole)));
      const bool decode = doing == Doing::decode;
      const TokenCosts costs = decode ? slowdown_.look(board_, depth, whole) : TokenCosts{};
      const model::Changes changes = advance(activity_of(window), wanted);
      const double done = std::min(left, changes.elapsed.as_double() / whole);
      left = changes.elapsed >= wanted ? 0 : left - done;
      if (decode) {
        slowdown_.add(costs, done);
      }
      note_traffic(window, changes.elapsed);
      if (changes.stall > Picoseconds() && !over()) {
        advance(activity_of(window), changes.stall);
      }
    }
    return left <= 0;
  }

  [[nodiscard]] double time_of(const Window& window, const WindowState& state, Doing doing,
                               std::int64_t depth) {
    if (doing == Doing::prefill) {
      return window.phase.picoseconds;
    }
    return soak_.reuse ? window.token_picoseconds(depth) : table_.token(state, depth);
  }

  void rest(Picoseconds time) {
    const Picoseconds end = std::min(now() + time, soak_.duration);
    while (now() < end && !over()) {
      advance(resting_activity(), end - now());
    }
  }

  /// Rules look at their sensors between tokens; those that pause do so until all are content.
  void wait_for_rules() {
    look();
    while (pausing() && !over()) {
      const Picoseconds began = now();
      advance(resting_activity(), kLook);
      paused_ += now() - began;
      look();
    }
  }

  void look() {
    const model::BoardState state = rules_.empty() ? model::BoardState{} : board_.state();
    for (Rule& rule : rules_) {
      const auto sensor = std::ranges::find(state.sensors, rule.rule.sensor, &model::NamedTemperature::name);
      rule.on = rule.on ? sensor->temperature >= rule.rule.below : sensor->temperature >= rule.rule.above;
    }
  }

  [[nodiscard]] bool pausing() const {
    return std::ranges::any_of(rules_, [](const Rule& rule) { return rule.on && rule.rule.pause; });
  }
  [[nodiscard]] std::vector<std::string> settings() const {
    std::vector<std::string> set;
    for (const Rule& rule : rules_) {
      if (rule.on && !rule.rule.set.empty()) {
        set.push_back(rule.rule.set);
      }
    }
    return set;
  }

  /// Up to `time` of this, the first change, the next row of the timeline, or the end.
  model::Changes advance(const model::Activity& activity, Picoseconds time) {
    if (stop_ != nullptr && stop_->load()) {
      throw Interrupted();
    }
    model::Changes sum;
    while (time > Picoseconds() && now() < soak_.duration) {
      const Picoseconds step = std::min({time, next_sample() - now(), soak_.duration - now()});
      const model::Changes changes = board_.advance(activity, step);
      sum.elapsed += changes.elapsed;
      time -= changes.elapsed;
      if (now() >= next_sample()) {
        sample();
      }
      if (changes.any()) {
        down_ = down_ || changes.went_down;
        sum.stall = changes.stall;
        return sum;
      }
    }
    return sum;
  }

  [[nodiscard]] model::Activity activity_of(const Window& window) const {
    return states_.activity(board_, window.phase, soak_.stalled_power);
  }
  [[nodiscard]] model::Activity resting_activity() const { return states_.resting(board_); }

  void note_traffic(const Window& window, Picoseconds time) {
    read_ += window.phase.read.count() * seconds(time);
    written_ += window.phase.written.count() * seconds(time);
    masters_ = window.masters;
  }

  [[nodiscard]] Picoseconds next_sample() const {
    return soak_.sample * (static_cast<std::int64_t>(timeline_.size()) + 1);
  }

  void sample() {
    const Picoseconds since = timeline_.empty() ? Picoseconds() : timeline_.back().at;
    if (now() <= since) {
      return;
    }
    const double time = seconds(now() - since);
    TimelineRow row{.at = now(),
                    .tokens_per_second = static_cast<double>(sampled_tokens_) / time,
                    .board = board_.state(),
                    .rails = {},
                    .read = BytesPerSecond(read_ / time),
                    .written = BytesPerSecond(written_ / time),
                    .masters = masters_,
                    .rules = settings()};
    for (std::size_t i = 0; i < row.board.rails.size(); ++i) {
      const Joules before = timeline_.empty() ? Joules() : timeline_.back().board.rails[i].energy;
      row.rails.push_back(Watts((row.board.rails[i].energy - before).count() / time));
    }
    timeline_.push_back(std::move(row));
    sampled_tokens_ = 0;
    read_ = written_ = 0;
    progress_(std::min(1.0, ratio(now(), soak_.duration)));
  }

  [[nodiscard]] SoakRecord finish() {
    SoakRecord record{.time = now(),
                      .answers = answers_,
                      .tokens = static_cast<std::int64_t>(tokens_.size()),
                      .windows = table_.measured(),
                      .relative_ci = table_.relative_ci(),
                      .first_minute = 0,
                      .steady = 0,
                      .inter_token = std::nullopt,
                      .energy = board_.energy(),
                      .paused_share = ratio(paused_, std::max(now(), Picoseconds(1))),
                      .causes = slowdown_.causes(),
                      .timeline = std::move(timeline_),
                      .end = board_.state()};
    if (!tokens_.empty()) {
      record.first_minute = first_minute();
      record.steady = speed_between(soak_.duration / 4 * 3, soak_.duration);
      std::vector<Picoseconds> times;
      for (const Token& token : tokens_) {
        times.push_back(token.time);
      }
      record.inter_token = percentiles_of(std::move(times));
    }
    return record;
  }

  /// Tokens per second of decoding, of tokens that ended in between; 0 if there are none.
  [[nodiscard]] double speed_between(Picoseconds from, Picoseconds to) const {
    double count = 0, time = 0;
    for (const Token& token : tokens_) {
      if (token.end > from && token.end <= to) {
        ++count;
        time += seconds(token.time);
      }
    }
    return time > 0 ? count / time : 0;
  }

  /// Of a minute of decoding, prefills and pauses not counted.
  [[nodiscard]] double first_minute() const {
    double count = 0;
    Picoseconds time;
    for (const Token& token : tokens_) {
      if (time >= kMinute) {
        break;
      }
      ++count;
      time += token.time;
    }
    return count / seconds(time);
  }

  struct Token {
    Picoseconds end;
    Picoseconds time;
  };

  const config::RunSpec& spec_;
  const config::SoakSpec& soak_;
  const std::function<void(double)>& progress_;
  const std::atomic<bool>* stop_;
  WindowTable table_;
  model::Board board_;
  States states_;
  Slowdown slowdown_;
  std::vector<Rule> rules_;
  std::vector<Token> tokens_;
  std::vector<TimelineRow> timeline_;
  std::vector<MasterRate> masters_;
  std::int64_t answers_ = 0;
  std::int64_t sampled_tokens_ = 0;  ///< since the last row,
  double read_ = 0, written_ = 0;    ///< and bytes
  Picoseconds paused_;
  bool down_ = false;
};

void check_device(const config::RunSpec& spec) {
  const config::DeviceSpec& device = spec.device;
  if (!device.clocks || !device.power || !device.thermal) {
    throw UserError(fmt::format("soak: {} has no {}; a long run needs clocks, power and thermal", device.name,
                                !device.clocks  ? "clocks"
                                : !device.power ? "power"
                                                : "thermal"));
  }
  for (const config::SoakRule& rule : spec.soak->rules) {
    if (std::ranges::find(device.thermal->sensors, rule.sensor, &config::SensorSpec::name) ==
        device.thermal->sensors.end()) {
      std::string known;
      for (const config::SensorSpec& sensor : device.thermal->sensors) {
        known += (known.empty() ? "" : ", ") + sensor.name;
      }
      throw UserError(
          fmt::format("soak.rules: '{}' is no sensor of {}; known: {}", rule.sensor, device.name, known));
    }
  }
}

}  // namespace

SoakRecord run_soak(const config::RunSpec& spec, const std::function<void(double)>& progress,
                    const std::atomic<bool>* stop) {
  check_device(spec);
  return Soak(spec, progress, stop).run();
}

}  // namespace kvsim::sim

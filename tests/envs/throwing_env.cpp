// Throwing-v0: the call that its argument `where` names throws; a number, or a std::exception if `what` has a text.
#include <stdexcept>

#include "surefoot/env.hpp"

namespace {

using namespace surefoot;

class Throwing final : public Env {
 public:
  explicit Throwing(const Options& options) : where_(options.text("where", "")), what_(options.text("what", "")) {
    fail("constructor");
  }

  std::unique_ptr<Env> clone() const override {
    fail("clone");
    return std::make_unique<Throwing>(*this);
  }
  std::vector<ObsPart> obs_parts() const override { return {{"", {2}}}; }
  ActionSpace action_space() const override { return ActionSpace::discrete(2); }
  bool has_mask() const override { return true; }
  void reset(Generator&) override { fail("reset"); }
  Outcome step(const Action&) override {
    ++age_;
    if (age_ > 1) fail("step");
    return {1.0, false};
  }
  void observe(double* obs) const override {
    if (age_ > 1) fail("observe");
    obs[0] = obs[1] = age_;
  }
  void mask(bool* allowed) const override {
    if (age_ > 1) fail("mask");
    allowed[0] = allowed[1] = true;
  }
  std::vector<MetricSpec> metrics() const override { return {{"age", Summary::kMean}}; }
  void measure(double* values) const override {
    if (age_ > 1) fail("measure");
    values[0] = age_;
  }
  std::vector<ParameterSpec> parameters() const override { return {ParameterSpec::number("wind", 0.0)}; }
  void set_parameter(std::size_t, std::span<const double>) override { fail("set_parameter"); }
  std::size_t state_size() const override { return 1; }
  void save(double* state) const override {
    fail("save");
    *state = age_;
  }
  void load(StateReader& state) override {
    age_ = state.number("age");
    fail("load");
  }

 private:
  void fail(const std::string& where) const {
    if (where != where_) return;
    if (what_.empty()) throw 42;
    throw std::out_of_range(what_);
  }

  std::string where_, what_;
  double age_ = 0;
};

const Registered kThrowing{"Throwing-v0", make<Throwing>, 100};

}  // namespace

// TMaze-v0: remember a cue until the end of a corridor, where it names the arm to take; see
// surefoot/envs/tasks/t_maze.py.
#include "bounded_options.hpp"
#include "surefoot/env.hpp"

namespace surefoot {
namespace {

constexpr int kDefaultLength = 50, kLeastLength = 10, kMostLength = 100;
constexpr std::int64_t kForward = 0, kUp = 1, kDown = 2;

class TMaze final : public Cloned<TMaze> {
 public:
  explicit TMaze(const Options& options)
      : length_(bounded_count(options, "length", kDefaultLength, kLeastLength, kMostLength)),
        bump_penalty_(share(options, "bump_penalty", 0.0)) {}

  std::vector<ObsPart> obs_parts() const override { return {{"", {2}, {{-1.0, 0.0}, {1.0, 1.0}}}}; }
  ActionSpace action_space() const override { return ActionSpace::discrete(3); }

  void reset(Generator& random) override {
    cue_ = random.uniform() < 0.5 ? 1.0 : -1.0;
    position_ = 0;
  }

  Outcome step(const Action& action) override {
    const std::int64_t choice = action.choices[0];
    if (position_ == length_) return {choice == (cue_ > 0.0 ? kUp : kDown) ? 1.0 : 0.0, true};
    ++position_;
    return {choice == kForward ? 0.0 : 0.0 - bump_penalty_, false};  // never -0.0
  }

  void observe(double* obs) const override {
    obs[0] = position_ == 0 ? cue_ : 0.0;
    obs[1] = position_ == length_ ? 1.0 : 0.0;
  }

  std::size_t state_size() const override { return 2; }
  void save(double* state) const override {
    state[0] = cue_;
    state[1] = static_cast<double>(position_);
  }
  void load(StateReader& state) override {
    cue_ = state.number("cue");
    if (cue_ != -1.0 && cue_ != 1.0) StateReader::refuse("cue", cue_, "-1 or 1");
    position_ = state.count("position", length_);
  }

 private:
  std::size_t length_;
  double bump_penalty_;
  double cue_ = 1.0;
  std::size_t position_ = 0;  // steps from the start; the junction is at `length_`
};

const Registered kTMaze{"TMaze-v0", make<TMaze>};

}  // namespace
}  // namespace surefoot

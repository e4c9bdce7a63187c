// Base class of MuJoCo tasks: a model from XML, a simulation, and its complete state.
#pragma once

#include <mujoco/mujoco.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "surefoot/env.hpp"

namespace surefoot {

/// The XML text of a model, for tasks that generate it.
struct Xml {
  std::string text;
};

/// A number of the model that is drawn for each episode, such as a mass or a friction.
struct ModelRange {
  std::string name;
  double low, high;
};

/// A task derives from `Cloned<Task, MujocoEnv>` and defines observations, reward and termination. Copies have their
/// own simulation and share the model, unless a task asks for its own (`own_model`).
class MujocoEnv : public Env {
 public:
  /// Reads the options `xml_file` (a path, or a file in the folder that option `assets` names) and `frame_skip`.
  MujocoEnv(const Options& options, const std::string& xml_file, int frame_skip);
  /// Reads the option `frame_skip`.
  MujocoEnv(const Options& options, const Xml& xml, int frame_skip);
  MujocoEnv(const MujocoEnv& other);
  MujocoEnv& operator=(const MujocoEnv&) = delete;

  Footprint footprint() const override;
  /// One number per actuator, within its control range.
  ActionSpace action_space() const override;
  void reset(Generator& random) override;
  void advance(const Action& action) override { simulate(action.values, false); }

  /// The current model.
  Scene scene() const override;
  std::size_t pose_size() const override;
  void pose(double* state) const override;

  /// The numbers drawn for the model, the integration state, and the derived arrays that tasks read: they lag the state
  /// by a substep, so recomputing them from it would give different numbers. A task that remembers more adds its own
  /// numbers.
  std::size_t state_size() const override;
  void save(double* state) const override;
  void load(StateReader& state) override;

 protected:
  /// Draws an initial state and calls `set_state` with it; by default, the initial state of the model.
  virtual void reset_model(Generator& random);

  /// Called before every substep of the simulation: sets `data.ctrl` from the action, by default to the action itself.
  /// Quantities that MuJoCo derives from positions and velocities (moment arms, the mass matrix) are then one substep
  /// old.
  virtual void control(std::span<const float> action, mjData& data);
  /// Call this in the constructor of a task to have `control` called inside every substep, between `mj_step1` and
  /// `mj_step2`, where everything derived from positions and velocities is current. Throws std::invalid_argument for
  /// the integrator RK4.
  void control_inside_substeps();

  /// Ranges of the model numbers that are drawn at every reset, uniformly and in this order, before `reset_model`.
  virtual std::vector<ModelRange> model_ranges() const { return {}; }
  /// Applies the drawn numbers to the model; `original` is the unmodified model. When a state is loaded, the numbers
  /// are finite, but the ranges may have moved since they were drawn. Throw std::invalid_argument for numbers that no
  /// range can give, such as a negative mass.
  virtual void apply_drawn(std::span<const double> /*drawn*/, const mjModel& /*original*/, mjModel& /*model*/) {}
  std::span<const double> drawn() const { return drawn_; }

  /// Whether the last `simulate` diverged. MuJoCo then resets the simulation in the middle of the step, so its state
  /// does not follow from the action; a task should end the episode.
  bool is_unstable() const { return is_unstable_; }

  const mjModel& model() const { return *model_; }
  const mjData& data() const { return *data_; }
  double dt() const { return model_->opt.timestep * frame_skip_; }
  std::span<const double> qpos() const { return {data_->qpos, static_cast<std::size_t>(model_->nq)}; }
  std::span<const double> qvel() const { return {data_->qvel, static_cast<std::size_t>(model_->nv)}; }
  /// Initial positions and velocities of the unmodified model.
  std::span<const double> init_qpos() const { return init_qpos_; }
  std::span<const double> init_qvel() const { return init_qvel_; }

  /// Runs `frame_skip` substeps controlled by the action, then computes the forces that MuJoCo otherwise computes only
  /// for sensors.
  void simulate(std::span<const float> action, bool with_forces = true);
  void set_state(std::span<const double> qpos, std::span<const double> qvel);
  /// Index of a body (mjOBJ_BODY), joint, geom or site; throws std::invalid_argument if the model lacks it.
  int id_of(mjtObj kind, const std::string& name) const;

  /// The model of this env alone, for tasks that change masses, friction or gains; it is copied at the first call.
  mjModel& own_model();
  /// Call this after a change of masses, inertias or geometry: recomputes what the model derives from them.
  void refresh_model();

 private:
  struct FreeData {
    void operator()(mjData* data) const { mj_deleteData(data); }
  };
  MujocoEnv(std::shared_ptr<const mjModel> model, const Options& options, int frame_skip);
  std::vector<std::span<mjtNum>> derived() const;
  void apply();
  void substep(std::span<const float> action);

  std::shared_ptr<const mjModel> original_, model_;
  bool has_own_model_ = false, controls_inside_ = false, is_unstable_ = false;
  std::vector<double> drawn_;
  std::unique_ptr<mjData, FreeData> data_;
  int frame_skip_;
  std::vector<double> init_qpos_, init_qvel_;
};

}  // namespace surefoot

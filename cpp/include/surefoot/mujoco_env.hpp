// What MuJoCo tasks share: a model from its XML file, a simulation, and its whole state.
#pragma once

#include <mujoco/mujoco.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "surefoot/env.hpp"

namespace surefoot {

/// A task derives from `Cloned<Task, MujocoEnv>` and gives observations, reward and endings. Copies share the model,
/// unless a task asks for its own (`own_model`), and each has its own simulation.
class MujocoEnv : public Env {
 public:
  /// Options `xml_file` (a path, or a file of the folder in option `assets`) and `frame_skip`.
  MujocoEnv(const Options& options, const std::string& xml_file, int frame_skip);
  MujocoEnv(const MujocoEnv& other);
  MujocoEnv& operator=(const MujocoEnv&) = delete;

  Footprint footprint() const override;
  /// One number per actuator, within its control range.
  ActionSpace action_space() const override;
  void reset(Generator& random) override;
  void advance(const Action& action) override { simulate(action.values, false); }

  /// The integration state, and the derived arrays that tasks read: they lag the state by a substep, so that computing
  /// them from it would not give the same numbers. A task that remembers more adds its own numbers.
  std::size_t state_size() const override;
  void save(double* state) const override;
  void load(StateReader& state) override;

 protected:
  /// Draw a start and `set_state` to it; by default, the start that the model says.
  virtual void reset_model(Generator& random);

  /// Called before every substep of the simulation: set `data.ctrl` from the action, by default to the action itself.
  virtual void control(std::span<const float> action, mjData& data);

  const mjModel& model() const { return *model_; }
  const mjData& data() const { return *data_; }
  double dt() const { return model_->opt.timestep * frame_skip_; }
  std::span<const double> qpos() const { return {data_->qpos, static_cast<std::size_t>(model_->nq)}; }
  std::span<const double> qvel() const { return {data_->qvel, static_cast<std::size_t>(model_->nv)}; }
  /// Of the model as it was made.
  std::span<const double> init_qpos() const { return init_qpos_; }
  std::span<const double> init_qvel() const { return init_qvel_; }

  /// `frame_skip` substeps, controlled by the action, then the forces that only sensors would ask for.
  void simulate(std::span<const float> action, bool with_forces = true);
  void set_state(std::span<const double> qpos, std::span<const double> qvel);
  /// Index of a body (mjOBJ_BODY), joint, geom or site; throws std::invalid_argument if the model lacks it.
  int id_of(mjtObj kind, const std::string& name) const;

  /// This env's own model, for tasks that change masses, friction or gains; copied when it is first asked for.
  mjModel& own_model();
  /// To be called after a change of masses, inertias or geometry: computes what the model derives from them.
  void refresh_model();

 private:
  struct FreeData {
    void operator()(mjData* data) const { mj_deleteData(data); }
  };
  std::vector<std::span<mjtNum>> derived() const;

  std::shared_ptr<const mjModel> model_;
  bool has_own_model_ = false;
  std::unique_ptr<mjData, FreeData> data_;
  int frame_skip_;
  std::vector<double> init_qpos_, init_qvel_;
};

}  // namespace surefoot

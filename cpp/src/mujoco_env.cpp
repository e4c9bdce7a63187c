#include "surefoot/mujoco_env.hpp"

#include <algorithm>
#include <bit>
#include <filesystem>
#include <limits>
#include <new>
#include <stdexcept>

#include "surefoot/mujoco_calls.hpp"

namespace surefoot {
namespace {

constexpr int kState = mjSTATE_INTEGRATION;
/// After any of these warnings, MuJoCo has reset the simulation in the middle of a step, or ignored the controls.
constexpr mjtWarning kDiverged[] = {mjWARN_BADQPOS, mjWARN_BADQVEL, mjWARN_BADQACC, mjWARN_BADCTRL};
/// The arena is filled from both ends, so one page at each end is partly used.
constexpr std::size_t kArenaEnds = 2 * 4096;

std::shared_ptr<const mjModel> shared(mjModel* model) {
  return {model, [](const mjModel* held) { mj_deleteModel(const_cast<mjModel*>(held)); }};
}

std::shared_ptr<const mjModel> copied(const mjModel* model) {
  mjModel* copy = nullptr;
  if (!error_of([&] { copy = mj_copyModel(nullptr, model); }).empty() || copy == nullptr) throw std::bad_alloc();
  return shared(copy);
}

std::shared_ptr<const mjModel> load_model(const std::string& path) {
  const Quiet quiet;
  char error[1024] = "";
  mjModel* model = mj_loadXML(path.c_str(), nullptr, error, sizeof(error));
  if (model == nullptr) throw std::invalid_argument("cannot load " + path + ": " + error);
  return shared(model);
}

std::shared_ptr<const mjModel> parse_model(const std::string& xml) {
  const Quiet quiet;
  char error[1024] = "";
  const std::unique_ptr<mjSpec, decltype(&mj_deleteSpec)> spec(
      mj_parseXMLString(xml.c_str(), nullptr, error, sizeof(error)), mj_deleteSpec);
  mjModel* model = spec == nullptr ? nullptr : mj_compile(spec.get(), nullptr);
  if (model == nullptr) {
    throw std::invalid_argument("cannot compile the model from its XML: " +
                                std::string(spec ? mjs_getError(spec.get()) : error));
  }
  return shared(model);
}

std::string model_path(const Options& options, const std::string& xml_file) {
  // Read in this order, so that both options are known whichever is used.
  const std::filesystem::path assets = options.text(kAssets, "");
  const std::filesystem::path file = options.text("xml_file", xml_file);
  // As in Gymnasium: a path that begins with a dot is the caller's own file.
  const bool own = file.is_absolute() || file.string().starts_with('.');
  return own || assets.empty() ? file.string() : (assets / file).string();
}

/// MuJoCo allocates everything at once; the only error here is lack of memory.
mjData* make_data(const mjModel* model) {
  mjData* data = nullptr;
  if (!error_of([&] { data = mj_makeData(model); }).empty() || data == nullptr) throw std::bad_alloc();
  return data;
}

/// The fields of a state, in the order of their bits.
constexpr const char* kStateFields[] = {"time",      "qpos",       "qvel",         "act",          "history",
                                        "warmstart", "ctrl",       "qfrc_applied", "xfrc_applied", "eq_active",
                                        "mocap_pos", "mocap_quat", "userdata",     "plugin",       "plastic"};

/// MuJoCo writes samples at the cursor of a history buffer, which is its second number.
void check_cursors(const double* history, int count, const int* samples, const int* addresses) {
  for (int i = 0; i < count; ++i) {
    if (addresses[i] < 0) continue;
    StateReader({history + addresses[i] + 1, 1}).count("cursor", static_cast<std::size_t>(samples[2 * i] - 1));
  }
}

/// Checks the integration state field by field; MuJoCo itself checks only positions and velocities.
std::vector<double> read_simulation(const mjModel& model, StateReader& state) {
  std::vector<double> simulation(static_cast<std::size_t>(mj_stateSize(&model, kState)));
  std::span<double> rest = simulation;
  for (std::size_t bit = 0; bit < std::size(kStateFields); ++bit) {
    const int field = 1 << bit;
    if ((kState & field) == 0) continue;
    const auto size = static_cast<std::size_t>(mj_stateSize(&model, field));
    state.numbers(kStateFields[bit], rest.first(size));
    if (field == mjSTATE_EQ_ACTIVE) {
      for (const double& active : rest.first(size)) StateReader({&active, 1}).flag(kStateFields[bit]);
    } else if (field == mjSTATE_HISTORY) {
      check_cursors(rest.data(), static_cast<int>(model.nactuator), model.actuator_history, model.actuator_historyadr);
      check_cursors(rest.data(), static_cast<int>(model.nsensor), model.sensor_history, model.sensor_historyadr);
    }
    rest = rest.subspan(size);
  }
  if (!rest.empty()) throw std::logic_error("this version of MuJoCo has states of a kind unknown here");
  return simulation;
}

}  // namespace

MujocoEnv::MujocoEnv(const Options& options, const std::string& xml_file, int frame_skip)
    : MujocoEnv(load_model(model_path(options, xml_file)), options, frame_skip) {}

MujocoEnv::MujocoEnv(const Options& options, const Xml& xml, int frame_skip)
    : MujocoEnv(parse_model(xml.text), options, frame_skip) {}

MujocoEnv::MujocoEnv(std::shared_ptr<const mjModel> model, const Options& options, int frame_skip)
    : original_(model),
      model_(std::move(model)),
      data_(make_data(model_.get())),
      frame_skip_(options.count("frame_skip", frame_skip)),
      init_qpos_(qpos().begin(), qpos().end()),
      init_qvel_(qvel().begin(), qvel().end()) {}

MujocoEnv::MujocoEnv(const MujocoEnv& other)
    : Env(other),
      original_(other.original_),
      model_(other.has_own_model_ ? copied(other.model_.get()) : other.model_),
      has_own_model_(other.has_own_model_),
      controls_inside_(other.controls_inside_),
      drawn_(other.drawn_),
      data_(make_data(model_.get())),
      frame_skip_(other.frame_skip_),
      init_qpos_(other.init_qpos_),
      init_qvel_(other.init_qvel_) {}

ActionSpace MujocoEnv::action_space() const {
  Bounds bounds{{}, {}};
  const double infinity = std::numeric_limits<double>::infinity();
  for (int actuator = 0; actuator < model_->nu; ++actuator) {
    const double low = model_->actuator_ctrlrange[2 * actuator], high = model_->actuator_ctrlrange[2 * actuator + 1];
    const bool has_range = low != 0 || high != 0;  // (0, 0) means no range in the model
    bounds.low.push_back(has_range ? low : -infinity);
    bounds.high.push_back(has_range ? high : infinity);
  }
  return ActionSpace::box({static_cast<std::size_t>(model_->nu)}, bounds);
}

mjModel& MujocoEnv::own_model() {
  if (!has_own_model_) model_ = copied(model_.get());
  has_own_model_ = true;
  return const_cast<mjModel&>(*model_);
}

void MujocoEnv::refresh_model() {
  mjModel& model = own_model();
  const std::unique_ptr<mjData, FreeData> scratch(make_data(&model));
  shielded([&] { mj_setConst(&model, scratch.get()); });
}

void MujocoEnv::control_inside_substeps() {
  if (model_->opt.integrator == mjINT_RK4) {
    throw std::invalid_argument("control inside a substep needs another integrator than RK4, such as implicitfast");
  }
  controls_inside_ = true;
}

/// The simulation serves as scratch: it is reset afterwards.
void MujocoEnv::apply() {
  mjModel& model = own_model();
  apply_drawn(drawn_, *original_, model);
  shielded([&] { mj_setConst(&model, data_.get()); });
}

void MujocoEnv::reset(Generator& random) {
  if (const auto ranges = model_ranges(); !ranges.empty()) {
    drawn_.clear();
    for (const ModelRange& range : ranges) drawn_.push_back(random.uniform(range.low, range.high));
    apply();
  }
  shielded([this] { mj_resetData(model_.get(), data_.get()); });
  reset_model(random);
}

void MujocoEnv::reset_model(Generator&) { set_state(init_qpos_, init_qvel_); }

void MujocoEnv::control(std::span<const float> action, mjData& data) {
  std::copy(action.begin(), action.end(), data.ctrl);
}

void MujocoEnv::simulate(std::span<const float> action, bool with_forces) {
  for (const auto warning : kDiverged) data_->warning[warning].number = 0;
  shielded([&] {
    for (int i = 0; i < frame_skip_; ++i) substep(action);
    if (with_forces) mj_rnePostConstraint(model_.get(), data_.get());
  });
  is_unstable_ = std::any_of(std::begin(kDiverged), std::end(kDiverged),
                             [this](auto warning) { return data_->warning[warning].number > 0; });
}

void MujocoEnv::substep(std::span<const float> action) {
  if (!controls_inside_) {
    control(action, *data_);
    return mj_step(model_.get(), data_.get());
  }
  mj_step1(model_.get(), data_.get());
  control(action, *data_);
  mj_step2(model_.get(), data_.get());
}

void MujocoEnv::set_state(std::span<const double> qpos, std::span<const double> qvel) {
  std::copy(qpos.begin(), qpos.end(), data_->qpos);
  std::copy(qvel.begin(), qvel.end(), data_->qvel);
  shielded([this] { mj_forward(model_.get(), data_.get()); });
}

int MujocoEnv::id_of(mjtObj kind, const std::string& name) const {
  const int id = mj_name2id(model_.get(), kind, name.c_str());
  if (id < 0) throw std::invalid_argument("the model has no '" + name + "'");
  return id;
}

std::vector<std::span<mjtNum>> MujocoEnv::derived() const {
  const auto bodies = static_cast<std::size_t>(model_->nbody), velocities = static_cast<std::size_t>(model_->nv);
  return {{data_->xpos, 3 * bodies},
          {data_->xquat, 4 * bodies},
          {data_->xmat, 9 * bodies},
          {data_->xipos, 3 * bodies},
          {data_->geom_xpos, 3 * static_cast<std::size_t>(model_->ngeom)},
          {data_->site_xpos, 3 * static_cast<std::size_t>(model_->nsite)},
          {data_->subtree_com, 3 * bodies},
          {data_->cinert, 10 * bodies},
          {data_->cvel, 6 * bodies},
          {data_->cfrc_ext, 6 * bodies},
          {data_->qfrc_actuator, velocities},
          {data_->actuator_force, static_cast<std::size_t>(model_->nout)},
          {data_->qfrc_constraint, velocities},
          {data_->sensordata, static_cast<std::size_t>(model_->nsensordata)}};
}

Footprint MujocoEnv::footprint() const {
  // Only the used pages of the arena take memory; how many, only a simulation shows.
  const std::unique_ptr<mjData, FreeData> tried(make_data(model_.get()));
  (void)error_of([&] { mj_step(model_.get(), tried.get()); });  // a step that fails shows it, too
  const auto fixed = sizeof(mjData) + static_cast<std::size_t>(tried->nbuffer);
  const auto arena = static_cast<std::size_t>(tried->narena), used = static_cast<std::size_t>(tried->maxuse_arena);
  const auto own = has_own_model_ ? static_cast<std::size_t>(mj_sizeModel(model_.get())) : 0;
  return {own + fixed + std::min(arena, used + kArenaEnds), own + fixed + arena};
}

Scene MujocoEnv::scene() const {
  std::vector<char> file(static_cast<std::size_t>(mj_sizeModel(model_.get())));
  shielded([&] { mj_saveModel(model_.get(), nullptr, file.data(), static_cast<mjtSize>(file.size())); });
  return {std::move(file), dt()};
}

std::size_t MujocoEnv::pose_size() const { return static_cast<std::size_t>(mj_stateSize(model_.get(), kState)); }

void MujocoEnv::pose(double* state) const { mj_getState(model_.get(), data_.get(), state, kState); }

std::size_t MujocoEnv::state_size() const {
  auto size = pose_size();
  for (const auto& array : derived()) size += array.size();
  return size + model_ranges().size();
}

void MujocoEnv::save(double* state) const {
  const auto ranges = model_ranges();
  for (std::size_t i = 0; i < ranges.size(); ++i) *state++ = drawn_.empty() ? ranges[i].low : drawn_[i];
  pose(state);
  state += pose_size();
  for (const auto& array : derived()) state = std::copy(array.begin(), array.end(), state);
}

void MujocoEnv::load(StateReader& state) {
  if (const auto ranges = model_ranges(); !ranges.empty()) {
    drawn_.clear();
    // Finite, but not within the range: a parameter may have moved that since the episode began.
    for (const ModelRange& range : ranges) drawn_.push_back(state.number(range.name));
    apply();
  }
  const std::vector<double> simulation = read_simulation(*model_, state);
  // Clear all history of the simulation: contacts of the old state would seed the next one.
  shielded([&] {
    mj_resetData(model_.get(), data_.get());
    mj_setState(model_.get(), data_.get(), simulation.data(), kState);
  });
  // A simulation that diverged may have saved NaN here and still recover: only observations and rewards read these
  // arrays.
  for (const auto& array : derived()) {
    for (double& number : array) number = std::bit_cast<double>(state.word());
  }
}

}  // namespace surefoot

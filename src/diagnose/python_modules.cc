#include "diagnose/python_modules.h"

#include <algorithm>
#include <array>

#include "diagnose/rule.h"

namespace stoker::diagnose {
namespace {

struct Package {
  std::string_view module;
  std::string_view name;  ///< on PyPI; "" if the project is not there, or under that name is a different one
};

// Modules whose package has a different name, beyond "_" and "-".
constexpr Package kPackages[] = {
    {"Bio", "biopython"},
    {"Crypto", "pycryptodome"},
    {"OpenGL", "PyOpenGL"},
    {"PIL", "pillow"},
    {"_distutils_hack", "setuptools"},
    {"apex", ""},
    {"attr", "attrs"},
    {"bs4", "beautifulsoup4"},
    {"clip", ""},
    {"cv2", "opencv-python-headless"},
    {"dateutil", "python-dateutil"},
    {"detectron2", ""},
    {"docx", "python-docx"},
    {"dotenv", "python-dotenv"},
    {"faiss", "faiss-cpu"},
    {"fitz", "pymupdf"},
    {"git", "GitPython"},
    {"google.protobuf", "protobuf"},
    {"hydra", "hydra-core"},
    {"jwt", "PyJWT"},
    {"lightning_fabric", "lightning-fabric"},
    {"magic", "python-magic"},
    {"nvidia.dali", ""},
    {"osgeo", "gdal"},
    {"pkg_resources", "setuptools"},
    {"psycopg2", "psycopg2-binary"},
    {"pl_bolts", "lightning-bolts"},
    {"ruamel", "ruamel.yaml"},
    {"serial", "pyserial"},
    {"skimage", "scikit-image"},
    {"sklearn", "scikit-learn"},
    {"slugify", "python-slugify"},
    {"torch_scatter", ""},
    {"torch_sparse", ""},
    {"umap", "umap-learn"},
    {"yaml", "PyYAML"},
    {"zmq", "pyzmq"},
};

// Parts of Python that an installation may lack.
constexpr std::array<std::string_view, 12> kOptionalParts = {"_bz2",  "_ctypes",  "_curses", "_dbm",
                                                             "_lzma", "_sqlite3", "_ssl",    "_tkinter",
                                                             "_uuid", "readline", "sqlite3", "tkinter"};
// Parts that newer releases of Python no longer have.
constexpr std::array<std::string_view, 6> kRemovedParts = {"asynchat",  "asyncore", "cgi",
                                                           "distutils", "imp",      "pipes"};
// Usual names of a program's own files: packages of these names are unrelated.
constexpr std::array<std::string_view, 30> kOwnFiles = {
    "app",     "eval",     "evaluate", "experiments", "my_model", "project", "trainer",    "training",
    "common",  "config",   "configs",  "core",        "data",     "dataset", "dataloader", "engine",
    "helpers", "layers",   "lib",      "losses",      "main",     "model",   "models",     "modules",
    "network", "networks", "options",  "src",         "train",    "utils"};

// A name that pip may have: other text could be a message.
bool is_module_name(std::string_view name) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
  return !name.empty() && name.find_first_not_of(kLetters) == name.npos && name.front() != '.' &&
         name.front() != '_';
}

const Package* known_package(std::string_view module) {
  const Package* found = std::find_if(std::begin(kPackages), std::end(kPackages),
                                      [&](const Package& package) { return package.module == module; });
  return found == std::end(kPackages) ? nullptr : found;
}

// The package of a module; "" if it is unknown.
std::string_view package_of(std::string_view module) {
  if (const Package* known = known_package(module)) return known->name;
  return is_module_name(module) ? module : "";
}

}  // namespace

Message module_cure(std::string_view module, StartKind start) {
  const std::string_view top = module.substr(0, module.find('.'));
  const bool has_job_file = start == StartKind::job_file || start == StartKind::local;
  if (is_among(top, kRemovedParts))
    return message("use an older Python, or a newer version of the package that imports {}", top);
  if (is_among(top, kOptionalParts))
    return message("use a different Python: this one was built without {}", top);
  if (is_among(top, kOwnFiles)) {
    return has_job_file
               ? message(
                     "if it is a file of your program, set its folder: `working_directory: FOLDER`, or "
                     "`environment: {{variables: {{PYTHONPATH: FOLDER}}}}`")
               : message(
                     "if it is a file of your program, start the program in its folder, or set "
                     "`PYTHONPATH=FOLDER`");
  }
  // Python names a part only if the whole is there.
  const bool is_part = top.size() != module.size() && known_package(module) == nullptr;
  const std::string_view package = package_of(is_part ? top : module);
  if (is_part && !package.empty())
    return message("its package has no such part: compare `pip show {}` with the requirements of the code",
                   package);
  if (package.empty()) {
    return has_job_file
               ? message(
                     "name the environment that has it in the job file: `environment: {{venv: FOLDER}}` "
                     "or `environment: {{conda: NAME}}`")
               : message("activate the environment that has it");
  }
  return has_job_file
             ? message(
                   "name the environment that has it in the job file, `environment: {{venv: FOLDER}}` or "
                   "`environment: {{conda: NAME}}`, or install it there: `pip install {}`",
                   package)
             : message("activate the environment that has it, or install it there: `pip install {}`",
                       package);
}

}  // namespace stoker::diagnose
